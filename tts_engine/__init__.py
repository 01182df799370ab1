"""Sayline's own streaming speech engine: text in, audio packets out. Knows nothing of LLMs, sinks or servers."""
