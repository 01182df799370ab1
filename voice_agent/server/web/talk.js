// The Talk tab: connects, shows what the server says, and hands it what the user does.

import { call } from "./api.js";
import { Captions } from "./captions.js";
import { onLanguage, reason, word } from "./i18n.js";
import { Meters } from "./meters.js";
import { Session } from "./session.js";
import { Timeline } from "./timeline.js";

const at = (id) => document.getElementById(id);

/** Sets the tab up; config: a function that gives the server's settings for pages. */
export function setUpTalk(config) {
  const captions = new Captions(at("log"));
  const timeline = new Timeline(at("bars"), at("headline"), at("legend"));
  const meters = new Meters(at("wave"), { microphone: at("mic-meter"), speech: at("speech-meter") }, at("talk-button"));
  let session = null;
  let opening = null;
  let muted = false;
  let speaking = false;
  let abilities = null; // what the server says of itself
  let state = "ready";
  const typed = []; // questions that are shown already, and that the server will tell of

  // ---- state ----

  function show(next) {
    state = next;
    at("state").dataset.state = next;
    const text = word(`state${next[0].toUpperCase()}${next.slice(1)}`);
    if (at("state-text").textContent !== text) at("state-text").textContent = text;
  }

  /** The state of a connection on which nobody speaks. */
  function rest() {
    speaking = false;
    const listens = session?.microphone && !muted;
    const hears = abilities?.microphone ? "listening" : "deaf";
    show(session === null ? "ready" : !listens ? "idle" : abilities ? hears : "preparing");
    controls();
  }

  function controls() {
    const microphone = Boolean(session?.microphone);
    at("talk-button").setAttribute("aria-pressed", String(microphone && !muted));
    at("talk-button").classList.toggle("muted", microphone && muted);
    at("talk-text").textContent = word(microphone ? (muted ? "unmute" : "mute") : "talk");
    at("hang-up").hidden = session === null;
    at("interrupt").disabled = !speaking;
  }

  function notice(text) {
    at("notice").hidden = !text;
    at("notice").textContent = text;
  }

  /** Says so where a microphone is on that the server cannot use. */
  function complain() {
    if (session?.microphone && abilities && !abilities.microphone) notice(word("noRecognizer", { why: abilities.why }));
  }

  // ---- the connection ----

  function settings() {
    return { voice: at("voice").value, speed: Number(at("speed").value), language: at("speech-language").value || null };
  }

  async function connected() {
    if (session) return session;
    opening ??= open().finally(() => (opening = null));
    return opening;
  }

  async function open() {
    notice("");
    abilities = null;
    typed.splice(0, typed.length - 1); // all but the one that opens the connection
    show("connecting");
    const next = new Session();
    next.addEventListener("message", ({ detail }) => hear(detail));
    next.addEventListener("speech", () => {
      at("speech").srcObject = next.speech;
      meters.follow("speech", next.speech);
    });
    next.addEventListener("closed", ({ detail: failed }) => {
      meters.follow("speech", null);
      meters.follow("microphone", null);
      at("speech").srcObject = null;
      timeline.stop();
      captions.settle();
      if (session !== next) return;
      session = null;
      muted = false;
      rest();
      if (failed) {
        show("failed");
        notice(word("peerFailed"));
      }
    });
    try {
      const { ice_servers: iceServers } = await config();
      await next.open(iceServers, settings());
    } catch (error) {
      next.close();
      show("failed");
      notice(word("connectFailed", { why: reason(error) }));
      throw error;
    }
    session = next;
    rest();
    return session;
  }

  // ---- what the server says ----

  const heard = {
    Hello: (hello) => {
      abilities = hello;
      complain();
      if (!speaking) rest();
    },
    Hearing: ({ speech }) => {
      if (speaking) return;
      if (speech) show("hearing");
      else rest();
    },
    Thinking: () => show("thinking"),
    Ducked: () => show("held"),
    Held: () => show("held"),
    Resumed: () => show(speaking ? "speaking" : "thinking"),
    RecognitionFailed: ({ error }) => notice(error),
    TurnBegan: () => {
      captions.begin();
      timeline.begin();
      speaking = true;
      show("thinking");
      controls();
    },
    SentenceTimes: (times) => {
      captions.sentence(times.index, times.text, times.paragraph);
      timeline.sentence(times, times.elapsed_s);
    },
    Caption: ({ sentence, text, begins_s: beginsS }) => {
      captions.heard(sentence, text);
      timeline.atEar(sentence, beginsS);
      if (state !== "held") show("speaking");
    },
    SentenceHeard: ({ sentence }) => captions.ended(sentence),
    ToolUsed: ({ name, result }) => {
      if (result === null) captions.note("usingTool", { name });
    },
    Interruption: () => captions.cut(),
    TurnEnded: ({ error }) => {
      timeline.stop();
      captions.settle();
      if (error) captions.note(null, { text: error }, true);
      rest();
    },
    Transcribed: ({ text, final }) => {
      if (final && typed[0] === text) {
        typed.shift();
        return;
      }
      captions.user(text, final);
      if (final) announce(word("youSaid", { text }));
    },
    Failed: ({ message }) => notice(message),
  };

  function hear(event) {
    heard[event.event]?.(event);
  }

  /** Tells assistive technology something that is visible elsewhere. */
  function announce(text) {
    at("announcement").textContent = text;
  }

  // ---- what the user does ----

  async function ask(text) {
    if (!text.trim()) return;
    typed.push(text);
    captions.user(text, true);
    try {
      (await connected()).send({ type: "text", text });
    } catch { /* told by open() */ }
  }

  async function talk() {
    if (session?.microphone) {
      muted = !muted;
      session.muted = muted;
      if (!speaking) rest();
      controls();
      return;
    }
    try {
      const open = await connected();
      await open.useMicrophone().catch((error) => {
        throw new Error(word("noMicrophone", { why: reason(error) }), { cause: error });
      });
      meters.follow("microphone", open.microphone);
      complain();
      if (!speaking) rest();
      controls();
    } catch (error) {
      if (error.cause) notice(error.message);
    }
  }

  function interrupt() {
    if (speaking) session?.send({ type: "interrupt" });
  }

  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("question").value;
    at("question").value = "";
    ask(text);
  });
  at("talk-button").addEventListener("click", talk);
  at("interrupt").addEventListener("click", interrupt);
  at("hang-up").addEventListener("click", () => {
    session?.close();
    at("question").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) interrupt();
  });
  addEventListener("pagehide", () => session?.close());

  at("speed").addEventListener("input", () => (at("speed-shown").textContent = `${Number(at("speed").value).toFixed(2)}×`));
  for (const id of ["voice", "speed", "speech-language"]) {
    at(id).addEventListener("change", () => session?.send({ type: "settings", ...settings() }));
  }

  function words() {
    at("examples").replaceChildren(
      ...word("examples").map((text) => {
        const item = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.addEventListener("click", () => {
          if (matchMedia("(pointer: fine)").matches) at("question").focus();
          ask(text);
        });
        item.append(button);
        return item;
      }),
    );
    show(state);
    controls();
  }
  onLanguage(words);
}

/** Fills a list of voices. */
export function fillVoices(select, voices) {
  select.replaceChildren(
    ...voices.map(({ id, label, language }) => {
      const option = document.createElement("option");
      option.value = id;
      if (id === "auto") option.dataset.i18n = "auto";
      option.textContent = id === "auto" ? word("auto") : `${label} · ${language === "zh" ? "中文" : "English"}`;
      return option;
    }),
  );
}

/** The server's settings for pages, asked for once. */
export function pageConfig() {
  let asked = null;
  return () => {
    asked ??= call("page/config").then((response) => response.json());
    asked.catch(() => (asked = null));
    return asked;
  };
}
