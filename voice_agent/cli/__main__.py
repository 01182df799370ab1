"""``python -m voice_agent.cli`` is ``sayline``."""

from voice_agent.cli import main

main()
