"""How English that is written in figures, signs and short forms is read aloud."""
