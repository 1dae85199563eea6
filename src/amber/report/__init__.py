"""Report: results written for people."""
