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

/** fetch, asking once for a key where the server wants one. Throws an Error with the server's message. */
export async function call(path, options = {}) {
  for (let tries = 0; ; tries += 1) {
    const response = await fetch(path, { ...options, headers: { ...options.headers, ...authorization() } });
    if (response.ok) return response;
    if (response.status === 401 && tries === 0) {
      const key = await askForKey();
      if (key) {
        storeKey(key);
        continue;
      }
    }
    throw new Error(await messageOf(response));
  }
}

async function messageOf(response) {
  try {
    const body = await response.json();
    return body.error?.message ?? body.detail ?? response.statusText;
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}
