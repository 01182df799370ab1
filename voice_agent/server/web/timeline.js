// The latency of a turn, drawn as it happens: a bar for each sentence, from its first token to its sound.

import { milliseconds, onLanguage, word } from "./i18n.js";

const STAGES = ["closed_s", "planned_s", "first_frame_s", "first_sample_s", "first_audible_s", "ear_s"];

/** Draws into the list of bars, the headline number and the legend. */
export class Timeline {
  #bars;
  #headline;
  #legend;
  #rows = new Map(); // index → {times, element parts}
  #waiting = null;
  #frame = 0;
  #running = false;
  #offsetS = 0; // of the page's clock against the turn's

  constructor(bars, headline, legend) {
    this.#bars = bars;
    this.#headline = headline;
    this.#legend = legend;
    onLanguage(() => this.#words());
  }

  /** A turn begins now. */
  begin() {
    this.stop();
    this.#rows.clear();
    this.#bars.replaceChildren();
    this.#headline.textContent = "–";
    this.#offsetS = performance.now() / 1000;
    this.#running = true;
    this.#waiting = this.#row(word("waitingForModel"));
    this.#waiting.times = { index: 0, token_s: 0 };
    this.#tick();
  }

  /** The times of a sentence, all or some more than before; elapsedS: of the turn, now. */
  sentence(times, elapsedS) {
    this.#offsetS = performance.now() / 1000 - elapsedS;
    if (this.#waiting) {
      this.#waiting.element.remove();
      this.#waiting = null;
    }
    let row = this.#rows.get(times.index);
    if (!row) {
      row = this.#row(`${times.index + 1}. ${times.text}`);
      this.#rows.set(times.index, row);
    }
    row.times = { ...row.times, ...times };
    this.#draw();
    this.#tick();
  }

  /** The first word of a sentence sounded at the listener's, at this time of the turn. */
  atEar(index, seconds) {
    const row = this.#rows.get(index);
    if (!row || row.times.ear_s !== undefined) return;
    row.times.ear_s = seconds;
    this.#draw();
  }

  /** The turn is over: nothing grows any more. */
  stop() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#running = false;
    this.#waiting?.element.remove();
    this.#waiting = null;
    this.#draw();
  }

  #row(text) {
    const element = document.createElement("li");
    element.className = "row";
    const label = document.createElement("span");
    label.className = "text";
    label.textContent = text;
    label.title = text;
    const number = document.createElement("span");
    number.className = "ms";
    const track = document.createElement("span");
    track.className = "track";
    track.setAttribute("aria-hidden", "true");
    element.append(label, number, track);
    this.#bars.append(element);
    return { element, number, track, times: {} };
  }

  #tick() {
    if (this.#frame) return;
    const step = () => {
      this.#frame = 0;
      if (this.#draw()) this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  /** Draws all rows to one scale; whether one of them still grows. */
  #draw() {
    const nowS = performance.now() / 1000 - this.#offsetS;
    const rows = [...this.#rows.values(), ...(this.#waiting ? [this.#waiting] : [])];
    const longest = Math.max(0.25, ...rows.map(({ times }) => length(this.#parts(times, nowS))));
    const grows = rows.map((row) => this.#drawRow(row, nowS, longest)).includes(true);
    const first = this.#rows.get(0)?.times;
    if (first?.first_audible_s != null) this.#headline.textContent = milliseconds(first.first_audible_s - first.token_s);
    return grows;
  }

  /** Whether the row still grows. */
  #drawRow(row, nowS, longest) {
    const parts = this.#parts(row.times, nowS);
    row.track.replaceChildren(
      ...parts.map(({ kind, seconds }) => {
        const span = document.createElement("span");
        span.className = `stage-${kind}`;
        span.style.width = `${(100 * seconds) / longest}%`;
        return span;
      }),
    );
    const live = this.#grows(row.times);
    this.#label(row, live, length(parts));
    return live;
  }

  #grows(times) {
    return this.#running && times.first_audible_s == null;
  }

  /** The stages that a sentence has passed, and the one that it is in. */
  #parts(times, nowS) {
    const parts = [];
    let fromS = times.token_s ?? 0;
    for (const [place, stage] of STAGES.entries()) {
      // What comes later is made while the sentences before it are heard: it waits until it is needed, twice.
      if (stage === "ear_s" && (times.index > 0 || times.ear_s === undefined)) break;
      const known = times[stage] != null;
      if (!known && !this.#grows(times)) break;
      const untilS = Math.max(fromS, known ? times[stage] : nowS);
      const kind = times.index > 0 && stage === "first_frame_s" ? "waits" : place + 1;
      parts.push({ kind, seconds: untilS - fromS });
      fromS = untilS;
      if (!known) break;
    }
    return parts;
  }

  #label(row, live, lengthS) {
    const { times } = row;
    const later = times.index > 0;
    row.number.classList.toggle("ahead", later);
    if (times.first_audible_s == null) row.number.textContent = live && !later ? milliseconds(lengthS) : "–";
    else if (!later) row.number.textContent = milliseconds(times.first_audible_s - (times.token_s ?? 0));
    else row.number.textContent = times.ear_s === undefined ? "…" : milliseconds(times.ear_s - times.first_audible_s, "ahead");
  }

  #words() {
    this.#legend.replaceChildren(
      ...["1", "2", "Waits", "3", "4", "5", "6"].map((stage) => {
        const item = document.createElement("li");
        const swatch = document.createElement("span");
        swatch.className = `swatch stage-${stage.toLowerCase()}`;
        item.append(swatch, word(`stage${stage}`));
        return item;
      }),
    );
    this.#draw();
  }
}

function length(parts) {
  return parts.reduce((total, { seconds }) => total + seconds, 0);
}
