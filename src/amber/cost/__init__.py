"""What training costs: counted beforehand, and measured while it runs."""
