"""The OpenAPI description holds: whatever Schemathesis makes of it is answered as described, and never by a crash."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.examples import examples
from voice_agent.llm.demo import DemoChat
from voice_agent.server.app import create_app
from voice_agent.server.config import ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]

app = create_app(ServerConfig(hosts=("testserver",)), engine=FakeSynthesizer(cost=0.0), model=DemoChat(pace=0))
app.state.service.ready = True
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


@schema.exclude(path_regex="^/rtc").parametrize()
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
def test_every_route_keeps_its_word(case: schemathesis.Case) -> None:
    case.call_and_validate(base_url="http://127.0.0.1", checks=CHECKS)
