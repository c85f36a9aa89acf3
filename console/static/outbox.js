// Answers of a labeller, kept until the server has them; they survive a reload, a lost server and a lost console.

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30000;
const TEMPORARY = new Set([0, 408, 429, 500, 502, 503, 504]);

/** A failed request; status 0: nobody answered. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** POST JSON to the console; return what it answers. */
export async function post(url, value, formToken) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json", "X-Form-Token": formToken },
      body: JSON.stringify(value),
      redirect: "error",
    });
  } catch {
    throw new Failure(0, "the console is away");
  }
  let reply;
  try {
    reply = await response.json();
  } catch {
    throw new Failure(response.status, `the console failed (${response.status})`);
  }
  if (!response.ok) throw new Failure(response.status, reply.error);
  return reply;
}

/** Unsent answers, in the order in which they were given. */
export class Outbox {
  /**
   * @param key where in sessionStorage; one labeller's answers are never sent as another's
   * @param events onTaken(entry, report), onRefused(entry, reason), onTrouble(status, count), onWell()
   */
  constructor(key, formToken, events) {
    this.key = key;
    this.formToken = formToken;
    this.events = events;
    this.entries = JSON.parse(sessionStorage.getItem(key) ?? "[]");
    for (const entry of this.entries) entry.due = 0; // from the previous page: it cannot be taken back here
    this.pauseMs = FIRST_PAUSE_MS;
    this.sending = null;
    this.timer = 0;
  }

  get size() {
    return this.entries.length;
  }

  names() {
    return this.entries.map((entry) => entry.body.query);
  }

  /** Keep an action of the labeller, which is sent after delayMs, with the words that describe it. */
  add(url, body, description, delayMs) {
    const entry = { id: crypto.randomUUID(), url, body, description, due: Date.now() + delayMs };
    this.entries.push(entry);
    this.#store();
    this.#wake();
    return entry;
  }

  /** Take back an entry that was not sent yet; return whether that worked. */
  takeBack(id) {
    const entry = this.entries.find((each) => each.id === id);
    if (entry === undefined || entry === this.sending || entry.tried) return false;
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.#store();
    return true;
  }

  /** Send all entries without further delay. */
  flush() {
    for (const entry of this.entries) entry.due = 0;
    this.#wake();
  }

  #store() {
    sessionStorage.setItem(this.key, JSON.stringify(this.entries));
  }

  #wake(afterMs = null) {
    clearTimeout(this.timer);
    if (this.sending !== null || this.entries.length === 0) return;
    const wait = afterMs ?? Math.max(0, this.entries[0].due - Date.now());
    this.timer = setTimeout(() => this.#send(), wait);
  }

  start() {
    this.#wake();
  }

  /** On unload, send every pending answer. Keep the entries: no response will arrive, and the server ignores duplicates. */
  leave() {
    for (const entry of this.entries) {
      if (entry === this.sending) continue;
      entry.tried = entry.blind = true;
      const headers = { "Content-Type": "application/json", Accept: "application/json", "X-Form-Token": this.formToken };
      fetch(entry.url, { method: "POST", headers, body: JSON.stringify(entry.body), keepalive: true }).catch(() => null);
    }
    this.#store();
  }

  /** Move the entries of a query behind those of the others: a request that the console fails at may never succeed. */
  #postpone(query) {
    const own = this.entries.filter((each) => each.body.query === query);
    this.entries = [...this.entries.filter((each) => each.body.query !== query), ...own];
    this.#store();
  }

  async #send() {
    const entry = this.entries[0];
    if (entry === undefined || this.sending !== null) return;
    this.sending = entry;
    entry.tried = true;
    let outcome;
    try {
      const report = await post(entry.url, entry.body, this.formToken);
      outcome = () => this.events.onTaken(entry, report);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.status === 401 || error.status === 403 || TEMPORARY.has(error.status)) {
        this.sending = null;
        if (error.status === 500) this.#postpone(entry.body.query);
        this.events.onTrouble(error.status, this.entries.length);
        this.#wake(this.pauseMs * (0.5 + Math.random() / 2));
        this.pauseMs = Math.min(LONGEST_PAUSE_MS, this.pauseMs * 2);
        return;
      }
      const counted = entry.blind && !/\/(answer|refuse)$/.test(entry.url); // it was sent when the page was unloaded
      outcome = () => (counted ? null : this.events.onRefused(entry, error.message));
    }
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.#store();
    this.sending = null;
    this.pauseMs = FIRST_PAUSE_MS;
    this.events.onWell();
    outcome();
    this.#wake();
  }
}
