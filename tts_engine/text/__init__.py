"""Text to phoneme ids: normalisation and pronunciation of English and Chinese. No torch."""
