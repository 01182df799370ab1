"""Sayline's own streaming speech engine: text in, audio packets out. Knows nothing of LLMs, sinks or servers."""

import os

# ONNX Runtime sends its maker what it runs and keeps a device's id in the home folder, unless this is there when it loads.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
