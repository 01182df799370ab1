"""The acoustic model and the vocoder, each with a whole form and a streaming form that equals it, and what computes them."""
