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
    this.#waiting = this.#row(word("waitingForModel"));
    this.#waiting.times = { token_s: 0 };
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
    this.#bars.scrollTop = this.#bars.scrollHeight;
    return { element, number, track, spans: [], times: {} };
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
    const lengths = rows.map((row) => reached(row.times, nowS) - (row.times.token_s ?? 0));
    const longest = Math.max(0.25, ...lengths);
    let grows = this.#waiting !== null;
    for (const row of rows) grows = this.#drawRow(row, nowS, longest) || grows;
    const first = this.#rows.get(0)?.times;
    if (first?.first_audible_s != null) this.#headline.textContent = milliseconds(first.first_audible_s - first.token_s);
    return grows;
  }

  #drawRow(row, nowS, longest) {
    const { times } = row;
    let fromS = times.token_s ?? 0;
    const startS = fromS;
    const growing = this.#frame !== 0 || times.first_audible_s == null;
    for (const [place, stage] of STAGES.entries()) {
      const known = times[stage] != null;
      const live = !known && growing && stage !== "ear_s";
      if (!known && !live) break;
      const untilS = Math.max(fromS, known ? times[stage] : nowS);
      const span = (row.spans[place] ??= row.track.appendChild(document.createElement("span")));
      span.className = `stage-${place + 1}${live ? " live" : ""}`;
      span.style.width = `${(100 * (untilS - fromS)) / longest}%`;
      fromS = untilS;
      if (live) break;
    }
    const shown = times.first_audible_s ?? fromS;
    row.number.textContent = milliseconds(Math.max(0, shown - startS));
    return times.first_audible_s == null;
  }

  #words() {
    this.#legend.replaceChildren(
      ...STAGES.map((_, place) => {
        const item = document.createElement("li");
        const swatch = document.createElement("span");
        swatch.className = `swatch stage-${place + 1}`;
        item.append(swatch, word(`stage${place + 1}`));
        return item;
      }),
    );
    this.#draw();
  }
}

function reached(times, nowS) {
  return times.ear_s ?? times.first_audible_s ?? nowS;
}
