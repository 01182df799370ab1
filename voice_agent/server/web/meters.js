// How loud the microphone and the speech are: two meters, the ring of the talk button, and a line that moves with them.

const FLOOR_DB = -60;
const SAY_MS = 500; // how often a meter's value is told to assistive technology

/** Follows streams that are handed in; draws while at least one is there. */
export class Meters {
  #context = null;
  #sources = new Map(); // name → {node, analyser, samples, level}
  #canvas;
  #parts;
  #button;
  #frame = 0;
  #saidMs = 0;
  #calm = matchMedia("(prefers-reduced-motion: reduce)");

  /** parts: {microphone, speech}: the meter elements. */
  constructor(canvas, parts, button) {
    this.#canvas = canvas;
    this.#parts = parts;
    this.#button = button;
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  /** Follows a stream under a name; null ends that. */
  follow(name, stream) {
    this.#sources.get(name)?.node.disconnect();
    this.#sources.delete(name);
    if (stream) {
      this.#context ??= new AudioContext();
      this.#context.resume();
      const node = this.#context.createMediaStreamSource(stream);
      const analyser = new AnalyserNode(this.#context, { fftSize: 1024 });
      node.connect(analyser);
      this.#sources.set(name, { node, analyser, samples: new Float32Array(analyser.fftSize), level: FLOOR_DB });
    }
    if (!this.#frame) this.#tick();
  }

  #tick() {
    this.#frame = requestAnimationFrame((nowMs) => {
      this.#frame = 0;
      for (const source of this.#sources.values()) measure(source);
      this.#show(nowMs);
      this.#draw();
      if (this.#sources.size) this.#tick();
    });
  }

  #show(nowMs) {
    const say = nowMs - this.#saidMs > SAY_MS || this.#sources.size === 0;
    if (say) this.#saidMs = nowMs;
    for (const [name, meter] of Object.entries(this.#parts)) {
      const level = this.#sources.get(name)?.level ?? FLOOR_DB;
      meter.firstElementChild.style.transform = `scaleX(${1 - level / FLOOR_DB})`;
      if (say) meter.setAttribute("aria-valuenow", String(Math.round(level)));
    }
    const microphone = this.#sources.get("microphone")?.level ?? FLOOR_DB;
    this.#button.style.setProperty("--level", String(this.#calm.matches ? 0 : 1 - microphone / FLOOR_DB));
  }

  /** The line: the microphone below, the speech above it. */
  #draw() {
    const scale = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (this.#canvas.width !== Math.round(width * scale)) this.#canvas.width = Math.round(width * scale);
    if (this.#canvas.height !== Math.round(height * scale)) this.#canvas.height = Math.round(height * scale);
    const pen = this.#canvas.getContext("2d");
    const style = getComputedStyle(this.#canvas);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const colours = { microphone: style.getPropertyValue("--stage-3"), speech: style.getPropertyValue("--accent") };
    for (const [name, colour] of Object.entries(colours)) {
      const source = this.#calm.matches ? null : this.#sources.get(name);
      if (!source && name === "microphone") continue;
      line(pen, source?.samples, width, height, colour);
    }
  }
}

function measure(source) {
  source.analyser.getFloatTimeDomainData(source.samples);
  let power = 0;
  for (const sample of source.samples) power += sample * sample;
  const level = Math.max(FLOOR_DB, Math.min(0, 10 * Math.log10(power / source.samples.length + 1e-12)));
  source.level = Math.max(level, source.level - 1.5); // falls slower than it rises
}

/** One stretch of sound, calm towards both ends of the line. */
function line(pen, samples, width, height, colour) {
  const middle = height / 2;
  pen.beginPath();
  pen.moveTo(0, middle);
  for (let x = 2; x < width; x += 2) {
    const sample = samples ? samples[Math.floor((x / width) * samples.length)] : 0;
    const window = Math.sin((Math.PI * x) / width) ** 2;
    pen.lineTo(x, middle - Math.tanh(sample * 5) * window * (middle - 2));
  }
  pen.lineTo(width, middle);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.6;
  pen.lineJoin = "round";
  pen.stroke();
}
