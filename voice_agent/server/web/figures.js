// The Admin tab: what speaks at the moment and how quick the server has been; asked for every second while it is seen.

import { call } from "./api.js";
import { milliseconds, onLanguage, reason, word } from "./i18n.js";

const EVERY_MS = 1000;

const at = (id) => document.getElementById(id);

/** Gives a function that is told whether the tab is seen. */
export function setUpFigures() {
  let timer = 0;
  let seen = false;
  let last = null;

  async function look() {
    try {
      last = await (await call("admin/streams")).json();
      at("admin-notice").hidden = true;
      show(last);
    } catch (error) {
      at("admin-notice").hidden = false;
      at("admin-notice").textContent = reason(error);
    }
    if (seen) timer = setTimeout(look, EVERY_MS);
  }

  onLanguage(() => last && show(last));
  return (visible) => {
    seen = visible;
    clearTimeout(timer);
    if (seen) look();
  };
}

function show({ live, free, score, underruns, latency }) {
  facts([
    ["live", live.length],
    ["free", free],
    ["score", score === null ? "–" : Math.round(score)],
    ["underruns", underruns],
  ]);
  rows(
    at("percentiles"),
    latency.map(({ name, p50_s: p50, p90_s: p90, p99_s: p99, count }) => [word(name) ?? name, ...[p50, p90, p99].map((value) => (value === null ? "–" : milliseconds(value))), count]),
    5,
    "noneYet",
  );
  rows(
    at("streams"),
    live.map((stream) => [
      stream.uid?.slice(0, 8) ?? "–",
      stream.kind,
      stream.voice,
      `${stream.age_s.toFixed(1)} s`,
      stream.first_sound_s === null ? "–" : milliseconds(stream.first_sound_s),
      `${stream.audio_s.toFixed(1)} s`,
      stream.underruns,
    ]),
    7,
    "none",
  );
}

function facts(pairs) {
  at("admin-facts").replaceChildren(
    ...pairs.map(([key, value]) => {
      const group = document.createElement("div");
      const name = document.createElement("dt");
      const number = document.createElement("dd");
      name.textContent = word(key);
      number.textContent = value;
      group.append(name, number);
      return group;
    }),
  );
}

function rows(body, values, columns, empty) {
  if (values.length === 0) {
    const row = document.createElement("tr");
    const cell = document.createElement("td");
    cell.colSpan = columns;
    cell.className = "empty";
    cell.textContent = word(empty);
    row.append(cell);
    body.replaceChildren(row);
    return;
  }
  body.replaceChildren(
    ...values.map((cells) => {
      const row = document.createElement("tr");
      row.append(
        ...cells.map((value, place) => {
          const cell = document.createElement(place === 0 ? "th" : "td");
          if (place === 0) cell.scope = "row";
          cell.textContent = value;
          return cell;
        }),
      );
      return row;
    }),
  );
}
