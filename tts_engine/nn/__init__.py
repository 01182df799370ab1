"""Building blocks of the models: torch only, no knowledge of speech."""
