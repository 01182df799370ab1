"""Who may import whom: read off the code, so that the picture in docs/architecture.md stays true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {
    "tts_engine": 0,
    "tts_engine.types": 0,
    "tts_engine.errors": 0,
    "tts_engine.nn": 0,
    "tts_engine.allocator": 1,
    "tts_engine.expansion": 1,
    "tts_engine.shaping": 1,
    "tts_engine.ring_buffer": 1,
    "tts_engine.weights": 1,
    "tts_engine.resources": 1,
    "tts_engine.admission": 1,
    "tts_engine.batching": 1,
    "tts_engine.throughput": 1,
    "tts_engine.hot_swap": 1,
    "tts_engine.models": 1,
    "tts_engine.text": 1,
    "tts_engine.planning": 2,
    "tts_engine.engine": 2,
    "tts_engine.profile": 2,
    "tts_engine.sessions": 2,
    "tts_engine.picking": 2,
    "tts_engine.scheduler": 2,
    "tts_engine.training": 3,
    "voice_agent": 0,
    "voice_agent.errors": 1,
    "voice_agent.audio": 2,
    "voice_agent.pacing": 2,
    "voice_agent.sound_device": 2,
    "voice_agent.start_buffer": 2,
    "voice_agent.stretch": 2,
    "voice_agent.prompts": 2,
    "voice_agent.metrics": 2,
    "voice_agent.llm": 3,
    "voice_agent.text": 3,
    "voice_agent.sinks": 3,
    "voice_agent.ears": 3,
    "voice_agent.ears.remote": 4,
    "voice_agent.synthesizers": 4,
    "voice_agent.testing": 4,
    "voice_agent.microphone": 4,
    "voice_agent.patience": 4,
    "voice_agent.tools": 4,
    "voice_agent.protocols": 4,
    "voice_agent.sounding": 4,
    "voice_agent.heard": 4,
    "voice_agent.report": 4,
    "voice_agent.read_ahead": 4,
    "voice_agent.queueing": 4,
    "voice_agent.fillers": 4,
    "voice_agent.rounds": 4,
    "voice_agent.turn": 4,
    "voice_agent.captions": 4,
    "voice_agent.playback": 4,
    "voice_agent.conversation_file": 4,
    "voice_agent.conversation": 4,
    "voice_agent.own_engine": 4,
    "voice_agent.api": 4,
    "voice_agent.agent": 4,
    "voice_agent.scribe": 4,
    "voice_agent.dialogue": 4,
    "voice_agent.cli": 5,
    "voice_agent.server": 5,
}
COLUMNS = ("voice_agent.llm", "voice_agent.text", "voice_agent.sinks", "voice_agent.ears")
TORCH_ALLOWED = (
    "tts_engine.nn",
    "tts_engine.models.acoustic",
    "tts_engine.models.vocoder",
    "tts_engine.models.packet",
    "tts_engine.models.eager",
    "tts_engine.models.cuda",
    "tts_engine.models.torch_trace",
    "tts_engine.training",
)


def part_of(module: str) -> str:
    """The longest entry of LAYERS that the module is or is in."""
    names = module.split(".")
    for length in range(len(names), 0, -1):
        name = ".".join(names[:length])
        if name in LAYERS:
            return name
    raise AssertionError(f"{module} has no place in the picture: add it to LAYERS and to docs/architecture.md")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in ("voice_agent", "tts_engine"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module, *, everywhere: bool = True) -> Iterator[str]:
    """What a module imports; without ``everywhere`` only at its top, outside of functions and TYPE_CHECKING."""
    nodes = ast.walk(tree) if everywhere else iter(tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = dict(modules())


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_downwards(name: str) -> None:
    if name == "voice_agent":
        return  # it only names the public API
    mine = part_of(name)
    for imported in imports(MODULES[name]):
        if not imported.startswith(("voice_agent.", "tts_engine.")):
            continue
        other = part_of(imported if imported in MODULES else imported.rsplit(".", 1)[0])
        if other == mine:
            continue
        assert LAYERS[other] <= LAYERS[mine], f"{name} ({mine}) must not import {imported} ({other})"
        assert not (mine in COLUMNS and other in COLUMNS), f"{name}: columns do not import one another ({imported})"
        assert not (mine.startswith("tts_engine") and other.startswith("voice_agent")), f"{name} imports {imported}"


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports inside functions and under TYPE_CHECKING count too: each module can be read before those that use it."""
    graph: dict[str, set[str]] = {}
    for name, tree in MODULES.items():
        found = {imported if imported in MODULES else imported.rpartition(".")[0] for imported in imports(tree)}
        graph[name] = found & MODULES.keys() - {name}
    assert "tts_engine.types" in graph["tts_engine.engine"]
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("name", ["tts_engine.nn.window", *(n for n in MODULES if not n.startswith(TORCH_ALLOWED))])
def test_torch_stays_in_the_models(name: str) -> None:
    assert not [imported for imported in imports(MODULES[name]) if imported.split(".")[0] == "torch"]


@pytest.mark.parametrize("folder", ["voice_agent", "voice_agent/server", "tts_engine"])
def test_the_picture_names_every_module(folder: str) -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    assert not [module for module in sorted(modules) if not re.search(rf"\b{module}\b", picture)]


def test_importing_the_package_is_light() -> None:
    """No torch, no sound device, no thread, none of the big dictionaries."""
    code = (
        "import sys, threading, voice_agent.api, voice_agent.agent, voice_agent.text.tagged_text\n"
        "heavy = {'torch', 'sounddevice', 'openai', 'pypinyin', 'matplotlib', 'rich', 'typer'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=ROOT)


def test_the_public_api_is_what_it_says() -> None:
    import voice_agent

    assert voice_agent.__all__ == ["Agent", "inject_prompt", "say", "speak", "stream"]
    assert all(getattr(voice_agent, name).__doc__ for name in voice_agent.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = voice_agent.nothing
