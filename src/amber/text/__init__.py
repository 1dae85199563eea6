"""From files to normalised documents."""
