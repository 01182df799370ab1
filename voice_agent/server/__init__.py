"""The server: speech over HTTP, WebSocket and WebRTC. ``voice_agent.server.app.create_app`` puts it together."""
