"""How far attention sees. Fixed by the training of the voice."""

WINDOW = 64
"""Frames that a frame sees directly, itself included; also the length of a block that anchors summarise."""
KEPT_BLOCKS = 32
"""Blocks whose anchors are kept: with 64 frames of 25 ms, 51 seconds."""
ENCODER_REACH = 32
"""Phonemes that the text encoder sees to each side."""
ENCODER_HEADS = 4
"""Heads of its attention."""
