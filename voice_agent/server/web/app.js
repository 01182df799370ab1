// Starts the page: tabs, language, colours, the API key, and the three tabs.

import { onKeyNeeded, storedKey, storeKey } from "./api.js";
import { setUpFigures } from "./figures.js";
import { currentLanguage, onLanguage, reason, setLanguage, show, word } from "./i18n.js";
import { setUpPlayground } from "./playground.js";
import { fillVoices, pageConfig, setUpTalk } from "./talk.js";

const at = (id) => document.getElementById(id);
const config = pageConfig();

setUpTalk(config);
setUpPlayground();
const adminSeen = setUpFigures();
setUpTabs();
setUpTheme();
setUpKey();
onLanguage(() => {
  at("language").textContent = currentLanguage() === "zh" ? "English" : "中文";
  at("language").lang = currentLanguage() === "zh" ? "en" : "zh-CN";
});
at("language").addEventListener("click", () => setLanguage(currentLanguage() === "zh" ? "en" : "zh"));
show();
loadVoices();

async function loadVoices() {
  try {
    const { voices } = await config();
    for (const id of ["voice", "play-voice"]) fillVoices(at(id), voices);
    at("play-form").dispatchEvent(new Event("input"));
  } catch (error) {
    at("notice").hidden = false;
    at("notice").textContent = word("connectFailed", { why: reason(error) });
  }
}

function setUpTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  function choose(tab) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      at(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    adminSeen(tab.id === "tab-admin");
  }
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => {
      choose(tab);
      history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? tabs[0] : event.key === "End" ? tabs.at(-1) : tabs.at((place + (step ?? 0)) % tabs.length);
      if (next === tab) return;
      event.preventDefault();
      next.focus();
      next.click();
    });
  }
  choose(tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) ?? tabs[0]);
}

function setUpTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const choices = ["auto", "light", "dark"];
  let choice = "auto";
  try {
    choice = localStorage.getItem("sayline-theme") ?? "auto";
  } catch { /* storage may be forbidden */ }
  function apply() {
    const root = document.documentElement;
    root.dataset.choice = choice;
    root.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    at("theme").dataset.i18nLabel = `theme${choice[0].toUpperCase()}${choice.slice(1)}`;
    at("theme").setAttribute("aria-label", word(at("theme").dataset.i18nLabel));
  }
  dark.addEventListener("change", apply);
  at("theme").addEventListener("click", () => {
    choice = choices[(choices.indexOf(choice) + 1) % choices.length];
    try {
      localStorage.setItem("sayline-theme", choice);
    } catch { /* the choice lasts as long as the page */ }
    apply();
  });
  apply();
}

function setUpKey() {
  const dialog = at("key-dialog");
  let asking = null;
  function ask() {
    at("key-button").hidden = false;
    asking ??= new Promise((resolve) => {
      at("key-field").value = storedKey() ?? "";
      dialog.returnValue = "cancel";
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "save" ? at("key-field").value.trim() : null), { once: true });
      dialog.showModal();
    }).finally(() => (asking = null));
    return asking;
  }
  onKeyNeeded(ask);
  at("key-button").hidden = storedKey() === null;
  at("key-button").addEventListener("click", async () => {
    const key = await ask();
    if (key === null) return;
    storeKey(key);
    loadVoices();
  });
}
