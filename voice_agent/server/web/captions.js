// The conversation as text: what was asked, and the answers, whose words take on colour as they are heard.

import { word } from "./i18n.js";

const MARGIN_PX = 32;

/** Writes into the log element. */
export class Captions {
  #log;
  #partial = null; // the user's line while it is still being recognised
  #turn = null; // the agent's line
  #sentences = new Map(); // index → {element, words, next: word, taken: letters of it}

  constructor(log) {
    this.#log = log;
  }

  /** What the user said; not final: it may still change. */
  user(text, final) {
    this.#partial ??= this.#line("user");
    this.#partial.querySelector("p").textContent = text;
    this.#partial.classList.toggle("partial", !final);
    if (final) this.#partial = null;
    this.#follow();
  }

  /** An answer begins. */
  begin() {
    this.settle();
    this.#turn = null;
    this.#sentences.clear();
  }

  /** A sentence that is about to be spoken; paragraph: it begins a new line. */
  sentence(index, text, paragraph) {
    if (this.#sentences.has(index)) return;
    this.#turn ??= this.#line("agent");
    let element = [...this.#turn.querySelectorAll("p:not(.after)")].at(-1);
    if (paragraph && element.hasChildNodes()) {
      element.after(document.createElement("p"));
      element = element.nextElementSibling;
    }
    const span = document.createElement("span");
    span.className = "sentence";
    const words = wordsOf(text).map(({ text: part, spoken }) => {
      if (!spoken) {
        span.append(part);
        return null;
      }
      const shown = document.createElement("span");
      shown.className = "word";
      shown.textContent = part;
      span.append(shown);
      return { element: shown, text: part };
    });
    if (element.hasChildNodes() && !/[\u3000-\u9fff\uff00-\uffef]$/.test(element.textContent)) element.append(" ");
    element.append(span);
    this.#sentences.set(index, { element: span, words: words.filter((entry) => entry !== null), next: 0, taken: 0 });
    this.#follow();
  }

  /** A word was heard: it and those before it take on colour. */
  heard(index, text) {
    const sentence = this.#sentences.get(index);
    if (!sentence) return;
    for (const other of this.#sentences.values()) other.element.classList.toggle("now", other === sentence);
    let left = letters(text).length;
    while (left > 0 && sentence.next < sentence.words.length) {
      const { element, text: part } = sentence.words[sentence.next];
      const size = letters(part).length - sentence.taken;
      element.classList.add("heard");
      this.#reveal(element);
      if (size > left) {
        sentence.taken += left;
        return;
      }
      left -= size;
      sentence.taken = 0;
      sentence.next += 1;
    }
  }

  /** A sentence was heard to its end. */
  ended(index) {
    const sentence = this.#sentences.get(index);
    if (!sentence) return;
    for (const { element } of sentence.words) element.classList.add("heard");
    sentence.next = sentence.words.length;
    sentence.element.classList.remove("now");
  }

  /** The answer was cut off. */
  cut() {
    if (!this.#turn) return;
    this.#turn.classList.add("cut");
    this.note("cut");
    this.settle();
  }

  /** A line of small print below the answer. */
  note(key, values = {}, error = false) {
    this.#turn ??= this.#line("agent");
    const line = document.createElement("p");
    line.className = error ? "after error" : "after";
    line.textContent = key === null ? values.text : word(key, values);
    this.#turn.append(line);
    this.#follow();
  }

  /** Nothing is being spoken. */
  settle() {
    for (const { element } of this.#sentences.values()) element.classList.remove("now");
  }

  #line(kind) {
    document.getElementById("welcome").hidden = true;
    const line = document.createElement("div");
    line.className = `turn ${kind}`;
    const who = document.createElement("span");
    who.className = "who";
    if (kind === "user") who.dataset.i18n = "you";
    who.textContent = kind === "user" ? word("you") : "Sayline";
    line.append(who, document.createElement("p"));
    this.#log.append(line);
    return line;
  }

  /** Shows the newest line, unless words above it are being spoken. */
  #follow() {
    if (!this.#log.querySelector(".sentence.now")) this.#log.scrollTop = this.#log.scrollHeight;
  }

  /** Scrolls the log, and nothing else, to where a word is seen. */
  #reveal(element) {
    const [box, place] = [this.#log.getBoundingClientRect(), element.getBoundingClientRect()];
    if (place.bottom > box.bottom - MARGIN_PX) this.#log.scrollTop += place.bottom - box.bottom + 2 * MARGIN_PX;
    else if (place.top < box.top) this.#log.scrollTop += place.top - box.top - MARGIN_PX;
  }
}

/** A text as words and what is between them; Chinese characters are words of their own. */
function wordsOf(text) {
  const parts = text.match(/[㐀-鿿豈-﫿][^\p{L}\p{N}\s]*|[^\s㐀-鿿豈-﫿]+|\s+/gu) ?? [];
  return parts.map((part) => ({ text: part, spoken: /\S/.test(part) }));
}

function letters(text) {
  return text.replace(/[^\p{L}\p{N}]/gu, "");
}
