// Calls to the server, with the API key where one is needed. The key lives in sessionStorage only.

const KEY = "sayline-key";

let askForKey = async () => null;

/** Says how a key is asked for: a function that gives one, or null when there is none. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

export function storedKey() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function storeKey(key) {
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch { /* storage may be forbidden: the key is then asked for again */ }
}

export function authorization() {
  const key = storedKey();
  return key ? { authorization: `Bearer ${key}` } : {};
}

/** Something that could not be done; code: why, in a word of the server's, the browser's or the page's own (i18n.js). */
export class Refusal extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** fetch, asking once for a key where the server wants one. Throws a Refusal, or what fetch throws when it is aborted. */
export async function call(path, options = {}) {
  for (let tries = 0; ; tries += 1) {
    const response = await reach(path, { ...options, headers: { ...options.headers, ...authorization() } });
    if (response.ok) return response;
    if (response.status === 401 && tries === 0) {
      const key = await askForKey();
      if (key) {
        storeKey(key);
        continue;
      }
    }
    throw await refusalOf(response);
  }
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal(error.message, "unreachable");
  }
}

async function refusalOf(response) {
  try {
    const { error } = await response.json();
    return new Refusal(error.message, error.code);
  } catch {
    return new Refusal(`${response.status} ${response.statusText}`, null);
  }
}
