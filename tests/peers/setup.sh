#!/bin/sh
# Makes an environment for each framework whose clients are tested against our server, outside of this repository:
#   tests/peers/setup.sh DIR && SAYLINE_FRAMEWORKS=DIR python -m pytest -m peer tests/voice_agent/server/test_peers.py
set -eu
dir=${1:?usage: tests/peers/setup.sh DIR}
python=${PYTHON:-python3}
mkdir -p "$dir"
cd "$dir"

"$python" -m venv pipecat
pipecat/bin/pip install --quiet 'pipecat-ai[deepgram,openai]>=1.14'

"$python" -m venv livekit
livekit/bin/pip install --quiet 'livekit-agents>=1.8' 'livekit-plugins-deepgram>=1.8' 'livekit-plugins-openai>=1.8'
