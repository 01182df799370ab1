"""Where the words come from: any LLM stream as deltas, an OpenAI-compatible client, and a scripted demo."""
