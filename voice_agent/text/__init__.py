"""The text: an LLM's stream to sentences, each with a plan of how it is spoken."""
