"""Where settings come from, which one wins, and what is said of those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tts_engine.engine import EngineConfig
from voice_agent.errors import ConfigError
from voice_agent.server.config import IceServer, KeySettings, ServerConfig
from voice_agent.server.settings import load_config

KEY = "0123456789abcdef0123"

FILE = f"""
host: 0.0.0.0
port: 9001
keys:
  - {{name: web, key: {KEY}, requests_per_minute: 30}}
origins: [https://example.com]
limits:
  text_chars: 500
  idle_s: 9
rtc:
  ice_servers:
    - urls: ["stun:stun.example.com:3478"]
    - {{urls: ["turn:turn.example.com"], username: u, credential: c}}
logs: {{text: true}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "sayline.yaml"
    file.write_text(FILE, encoding="utf-8")
    return file


def test_a_file(path: Path) -> None:
    config = load_config(path)
    assert (config.host, config.port, config.origins) == ("0.0.0.0", 9001, ("https://example.com",))
    assert config.keys == (KeySettings("web", KEY, requests_per_minute=30),)
    assert (config.limits.text_chars, config.limits.idle_s, config.limits.body_bytes) == (500, 9.0, 262_144)
    assert config.rtc.ice_servers[1] == IceServer(("turn:turn.example.com",), "u", "c")
    assert config.logs.text


def test_flags_before_environment_before_file_before_defaults(path: Path) -> None:
    environment = {"SAYLINE_PORT": "9002", "SAYLINE_LIMITS_TEXT_CHARS": "600", "SAYLINE_LIMITS_IDLE_S": "8", "HOME": "/root"}
    environment |= {"SAYLINE_SERVICE_HOST": "10.0.0.1", "SAYLINE_PORT_8000_TCP": "tcp://10.0.0.1:8000"}  # Kubernetes
    assert load_config(path, environment).port == 9002
    config = load_config(path, environment, {"port": 9003, "host": None}, ["limits.text_chars=700", "logs.text=no"])
    assert (config.port, config.host) == (9003, "0.0.0.0")
    assert (config.limits.text_chars, config.limits.idle_s, config.limits.header_s) == (700, 8.0, 10.0)
    assert not config.logs.text


def test_the_file_may_be_named_in_the_environment(path: Path) -> None:
    assert load_config(environment={"SAYLINE_CONFIG": str(path)}).port == 9001


def test_lists_keys_and_nothing_from_the_environment() -> None:
    environment = {"SAYLINE_ORIGINS": "https://a.example, https://b.example", "SAYLINE_API_KEY": KEY, "SAYLINE_HOST": "::"}
    config = load_config(environment=environment)
    assert config.origins == ("https://a.example", "https://b.example")
    assert config.keys == (KeySettings("default", KEY),)
    assert load_config(sets=["engine.workers=3"]).engine.workers == 3


def test_how_the_engine_computes_comes_from_all_places(path: Path) -> None:
    assert load_config(path).engine.arithmetic() == EngineConfig()
    path.write_text(f"{FILE}\nengine: {{precision: int8, compile: onnx, chunk_frames: [8, 32]}}\n", encoding="utf-8")
    assert load_config(path).engine.arithmetic() == EngineConfig((8, 32), precision="int8", compile="onnx")
    environment = {"SAYLINE_ENGINE_CHUNK_FRAMES": "4, 16,64", "SAYLINE_ENGINE_PRECISION": "float32"}
    config = load_config(path, environment, {"engine.precision": "auto", "engine.compile": None})
    assert config.engine.arithmetic() == EngineConfig((4, 16, 64), compile="onnx")
    for setting, told in {
        "engine.precision=int4": "--set engine.precision: expected one of auto, float32, bfloat16, int8, found 'int4'",
        "engine.compile=jit": "--set engine.compile: expected one of auto, none, onnx, cuda, found 'jit'",
        "engine.precision=bfloat16": "engine: bfloat16 is computed by eager torch",
        "engine.chunk_frames=6,many": "--set engine.chunk_frames: expected a whole number, found 'many'",
        "engine.chunk_frames=6,65": "engine: chunk_frames needs a list of whole numbers from 1 to 64",
        "engine.chunk_frames=": "engine: chunk_frames needs a list",
    }.items():
        with pytest.raises(ConfigError, match=told):
            load_config(path, sets=[setting])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("limit: {}", r"sayline.yaml: limit: unknown key; allowed: .*limits"),
        ("limits: {text_char: 3}", r"sayline.yaml: limits.text_char: unknown key; allowed: .*text_chars"),
        ("limits: {text_chars: many}", r"sayline.yaml: limits.text_chars: expected a whole number, found 'many'"),
        ("limits: {text_chars: true}", r"limits.text_chars: expected a whole number, found True"),
        ("limits: {idle_s: -1}", r"sayline.yaml: limits: idle_s is -1.0: use a number from"),
        ("limits: []", r"sayline.yaml: limits: expected a mapping"),
        ("- a", r"sayline.yaml: expected a mapping"),
        ("port: 1\nport: 2", r"sayline.yaml: line 1: the key 'port' stands twice"),
        ("port: 70000", r"sayline.yaml: port is 70000"),
        ("keys: [{name: a, key: short}]", r"sayline.yaml: keys\[0\]: the key of 'a' has to be 16 or more ASCII"),
        ("keys: [{name: a}]", r"sayline.yaml: keys\[0\]: key is missing"),
        ("keys: [{name: a, kee: b}]", r"keys\[0\].kee: unknown key"),
        ("keys: a", r"keys: expected a list"),
        ("origins: [example.com]", r"origins: 'example.com' is no origin"),
        ("rtc: {ice_servers: [{urls: ['http://a']}]}", r"ice_servers\[0\]: 'http://a' is no ICE server"),
        ("llm: {kind: claude}", r"llm.kind: expected one of openai, demo, none, found 'claude'"),
        ("voice: [", r"not valid YAML"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "sayline.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        load_config(path)


@pytest.mark.parametrize(
    ("environment", "sets", "told"),
    [
        ({"SAYLINE_PORT": "http"}, [], "SAYLINE_PORT: expected a whole number, found 'http'"),
        ({"SAYLINE_LIMITS_TEXT": "3"}, [], "SAYLINE_LIMITS_TEXT: unknown setting"),
        ({"SAYLINE_LIMIT_TEXT_CHARS": "3"}, [], "did you mean SAYLINE_LIMITS_TEXT_CHARS"),
        ({"SAYLINE_KEYS": KEY}, [], "SAYLINE_KEYS: several keys are written in the file"),
        ({"SAYLINE_APIKEY": KEY}, [], "SAYLINE_APIKEY: unknown setting; did you mean SAYLINE_API_KEY"),
        ({"SAYLINE_LOGS_TEXT": "maybe"}, [], "SAYLINE_LOGS_TEXT: expected true or false"),
        ({"SAYLINE_API_KEY": "short"}, [], "SAYLINE_API_KEY: the key of 'default'"),
        ({}, ["limits.text=3"], "--set limits.text=3: write setting=value"),
        ({}, ["port"], "--set port: write setting=value"),
        ({}, ["port=x"], "--set port: expected a whole number"),
        ({"SAYLINE_CONFIG": "/nowhere/sayline.yaml"}, [], "/nowhere/sayline.yaml: cannot be read"),
    ],
)
def test_bad_variables_and_flags_are_named(environment: dict[str, str], sets: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(environment=environment, sets=sets)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_the_loopback_needs_no_key(host: str) -> None:
    assert ServerConfig(host=host).loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", ""])
def test_any_other_address_needs_a_key_or_a_clear_word(host: str) -> None:
    with pytest.raises(ConfigError, match="no API key is set"):
        ServerConfig(host=host)
    ServerConfig(host=host, allow_anyone=True)
    ServerConfig(host=host, keys=(KeySettings("a", KEY),))


def test_keys_are_not_shown() -> None:
    config = ServerConfig(keys=(KeySettings("a", KEY),))
    assert KEY not in repr(config)


def test_two_keys_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="a name and a key of its own"):
        ServerConfig(keys=(KeySettings("a", KEY), KeySettings("a", KEY[::-1])))
