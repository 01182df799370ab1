// The Playground tab: one request for speech, with what it cost.

import { call, storedKey } from "./api.js";
import { currentLanguage, milliseconds, onLanguage, reason, word } from "./i18n.js";

const PCM_RATE = 24_000;
const TYPES = { pcm: "audio/wav", wav: "audio/wav", mp3: "audio/mpeg", opus: "audio/ogg", flac: "audio/flac", aac: "audio/aac" };

const at = (id) => document.getElementById(id);

export function setUpPlayground() {
  let stopping = null;
  let link = null;
  let example = "";

  function request() {
    return {
      model: "tts-1",
      input: at("play-text").value,
      voice: at("play-voice").value,
      response_format: at("play-format").value,
      speed: Number(at("play-speed").value),
    };
  }

  function notice(text) {
    at("play-notice").hidden = !text;
    at("play-notice").textContent = text;
  }

  function showCommand() {
    const { origin } = location;
    const body = JSON.stringify(request()).replaceAll("'", "'\\''");
    const key = storedKey() ? ' \\\n  -H "Authorization: Bearer $API_KEY"' : "";
    const name = `speech.${at("play-format").value}`;
    at("play-curl").textContent =
      `curl ${origin}/v1/audio/speech${key} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}' \\\n  -o ${name}`;
  }

  async function speak() {
    const asked = request();
    const format = asked.response_format;
    notice("");
    for (const fact of ["first", "all", "size", "duration"]) at(`fact-${fact}`).textContent = "–";
    at("play-download").hidden = true;
    stopping = new AbortController();
    at("play-stop").disabled = false;
    at("play").disabled = true;
    const beganMs = performance.now();
    const player = format === "pcm" ? new PcmPlayer(PCM_RATE) : null;
    const sound = at("play-audio");
    sound.pause();
    stopping.signal.addEventListener("abort", () => {
      player?.stop();
      sound.pause();
    });
    try {
      const response = await call("v1/audio/speech", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(asked),
        signal: stopping.signal,
      });
      const parts = [];
      for await (const part of bytesOf(response)) {
        if (!parts.length) at("fact-first").textContent = milliseconds((performance.now() - beganMs) / 1000);
        parts.push(part);
        player?.feed(part);
      }
      player?.end();
      at("fact-all").textContent = milliseconds((performance.now() - beganMs) / 1000);
      const bytes = new Blob(parts).size;
      at("fact-size").textContent = `${(bytes / 1024).toLocaleString(currentLanguage(), { maximumFractionDigits: 1 })} KiB`;
      keep(format, parts, bytes);
      if (!player) await sound.play().catch(() => {}); // the browser may want another click: the controls are there
    } catch (error) {
      if (error.name !== "AbortError") notice(reason(error));
    } finally {
      at("play").disabled = false;
    }
  }

  /** Puts the sound into the player and behind the link. */
  function keep(format, parts, bytes) {
    if (link) for (const url of link) URL.revokeObjectURL(url);
    const file = new Blob(parts, { type: format === "pcm" ? "application/octet-stream" : TYPES[format] });
    const playable = format === "pcm" ? new Blob([wavHeader(bytes, PCM_RATE), ...parts], { type: TYPES.pcm }) : file;
    link = [URL.createObjectURL(file), URL.createObjectURL(playable)];
    const sound = at("play-audio");
    sound.src = link[1];
    sound.ondurationchange = () => {
      if (Number.isFinite(sound.duration)) at("fact-duration").textContent = `${sound.duration.toFixed(2)} s`;
    };
    at("play-download").href = link[0];
    at("play-download").download = `speech.${format}`;
    at("play-download").hidden = false;
  }

  at("play-form").addEventListener("submit", (event) => {
    event.preventDefault();
    speak();
  });
  at("play-stop").addEventListener("click", () => {
    stopping?.abort();
    at("play-stop").disabled = true;
  });
  at("play-form").addEventListener("input", () => {
    at("play-speed-shown").textContent = `${Number(at("play-speed").value).toFixed(2)}×`;
    showCommand();
  });
  onLanguage(() => {
    if (at("play-text").value === example) at("play-text").value = example = word("playExample");
    showCommand();
  });
}

async function* bytesOf(response) {
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/** Plays 16-bit PCM while it comes in. */
class PcmPlayer {
  #context;
  #rest = new Uint8Array(0);
  #dueS = 0;

  constructor(rate) {
    this.#context = new AudioContext({ sampleRate: rate });
  }

  feed(bytes) {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const whole = all.length - (all.length % 2);
    this.#rest = all.slice(whole);
    if (whole === 0 || this.#context.state === "closed") return;
    const view = new DataView(all.buffer, 0, whole);
    const buffer = this.#context.createBuffer(1, whole / 2, this.#context.sampleRate);
    const samples = buffer.getChannelData(0);
    for (let place = 0; place < samples.length; place += 1) samples[place] = view.getInt16(2 * place, true) / 32768;
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#context.destination);
    this.#dueS = Math.max(this.#dueS, this.#context.currentTime + 0.03);
    source.start(this.#dueS);
    this.#dueS += buffer.duration;
  }

  /** Nothing more comes: gives the device back when all has sounded. */
  end() {
    setTimeout(() => this.stop(), Math.max(0, this.#dueS - this.#context.currentTime) * 1000 + 500);
  }

  stop() {
    if (this.#context.state !== "closed") this.#context.close();
  }
}

function wavHeader(bytes, rate) {
  const view = new DataView(new ArrayBuffer(44));
  const text = (place, value) => [...value].forEach((char, offset) => view.setUint8(place + offset, char.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes, true);
  return view;
}
