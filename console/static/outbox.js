// Answers of a labeller, kept until the server has them; they survive closing the page, and outages of server or console.
// Rows that a program pushes wait in client/outbox.py.

import { forget, keep, openStore, takeOver } from "./unsent.js";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30000;
const TAKE_OVER_MS = 5000;
const OPEN_MS = 2000;
const MOST_ENTRIES = 200;
const TEMPORARY = new Set([0, 408, 429, 500, 502, 503, 504]);

/** A failed request; status 0: no response. */
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** POST JSON to the console; return the response. */
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

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Unsent answers, in the order in which they were given. */
export class Outbox {
  /**
   * @param labeller whose answers these are; they are never sent as another's
   * @param events onTaken(entry, report), onRefused(entry, reason), onTrouble(status, count), onWell(), onUnkept()
   */
  constructor(labeller, formToken, events) {
    this.labeller = labeller;
    this.formToken = formToken;
    this.events = events;
    this.entries = [];
    this.isKept = false; // whether entries outlive the page
    this.isInTrouble = false; // whether the last entry could not be sent
    this.numbers = new Map(); // by id: promise of the entry's number on the disk
    this.pauseMs = FIRST_PAUSE_MS;
    this.sending = null;
    this.timer = 0;
  }

  get size() {
    return this.entries.length;
  }

  get isFull() {
    return this.entries.length >= MOST_ENTRIES;
  }

  /** Whether answers would be left if the page were closed now: closing sends them, unless the server is unreachable. */
  get isStuck() {
    return this.size > 0 && (this.#isUnheard || !this.isKept);
  }

  get #isUnheard() {
    return this.isInTrouble || !navigator.onLine;
  }

  names() {
    return this.entries.map((entry) => entry.body.query);
  }

  /** Take over the answers that closed pages left, now and later. */
  async start() {
    try {
      await Promise.race([openStore(), sleep(OPEN_MS).then(() => Promise.reject(new Error("it does not answer")))]);
      this.isKept = true;
      await this.#takeOver();
      setInterval(() => this.#takeOver().catch(() => this.#loseStore()), TAKE_OVER_MS);
    } catch {
      this.isKept = true;
      this.#loseStore();
    }
  }

  /** Add an action of the labeller, to be sent after delayMs, with its description. */
  add(url, body, description, delayMs) {
    const entry = { id: crypto.randomUUID(), labeller: this.labeller, url, body, description };
    this.#keep(entry);
    entry.due = Date.now() + delayMs;
    this.entries.push(entry);
    this.#wake();
    return entry;
  }

  /** Take back an unsent entry; return whether that succeeded. */
  takeBack(id) {
    const entry = this.entries.find((each) => each.id === id);
    if (entry === undefined || entry === this.sending || entry.tried) return false;
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.#forget(entry);
    return true;
  }

  /** Send all entries without further delay. */
  flush() {
    for (const entry of this.entries) entry.due = 0;
    this.#wake();
  }

  /** Send all entries; return on completion or failure, or after some time. */
  async settle(longestMs) {
    this.isInTrouble = false; // try again even if it failed before
    this.flush();
    for (const end = Date.now() + longestMs; this.size > 0 && !this.#isUnheard && Date.now() < end; ) await sleep(50);
  }

  /** Remove a refused entry after the labeller has read the reason. */
  dismiss(entry) {
    this.#forget(entry);
  }

  /** On unload, send every pending answer. Keep the entries: no response will arrive, and the server ignores duplicates. */
  leave() {
    for (const entry of this.entries) {
      if (entry === this.sending) continue;
      entry.tried = entry.blind = true;
      const headers = { "Content-Type": "application/json", Accept: "application/json", "X-Form-Token": this.formToken };
      fetch(entry.url, { method: "POST", headers, body: JSON.stringify(entry.body), keepalive: true }).catch(() => null);
    }
  }

  async #takeOver() {
    for (const { number, page: _, ...entry } of await takeOver(this.labeller)) {
      this.numbers.set(entry.id, Promise.resolve(number));
      if (entry.refused) this.events.onRefused(entry, entry.refused);
      else this.entries.push({ ...entry, due: 0, tried: true, blind: true }); // its page may have sent it while closing
    }
    this.#wake();
  }

  /** Write an entry to the disk, replacing its earlier version. */
  #keep(entry) {
    if (!this.isKept) return;
    const before = this.numbers.get(entry.id) ?? Promise.resolve(undefined);
    const content = { id: entry.id, labeller: entry.labeller, url: entry.url, body: entry.body, description: entry.description };
    if (entry.refused) content.refused = entry.refused;
    const kept = this.numbers.has(entry.id) ? before.then((number) => keep({ ...content, number })) : keep(content);
    this.numbers.set(entry.id, kept);
    kept.catch(() => this.#loseStore());
  }

  #forget(entry) {
    const number = this.numbers.get(entry.id);
    this.numbers.delete(entry.id);
    number?.then(forget).catch(() => this.#loseStore());
  }

  #loseStore() {
    if (this.isKept) this.events.onUnkept();
    this.isKept = false;
  }

  #wake(afterMs = null) {
    clearTimeout(this.timer);
    if (this.sending !== null || this.entries.length === 0) return;
    const wait = afterMs ?? Math.max(0, this.entries[0].due - Date.now());
    this.timer = setTimeout(() => this.#send(), wait);
  }

  /** Move the entries of a query to the end: a request on which the console fails may never succeed. */
  #postpone(query) {
    const own = this.entries.filter((each) => each.body.query === query);
    this.entries = [...this.entries.filter((each) => each.body.query !== query), ...own];
  }

  async #send() {
    const entry = this.entries[0];
    if (entry === undefined || this.sending !== null) return;
    this.sending = entry;
    entry.tried = true;
    let outcome;
    try {
      const report = await post(entry.url, entry.body, this.formToken);
      outcome = () => {
        this.#forget(entry);
        this.events.onTaken(entry, report);
      };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.status === 401 || error.status === 403 || TEMPORARY.has(error.status)) {
        this.sending = null;
        this.isInTrouble = true;
        if (error.status === 500) this.#postpone(entry.body.query);
        this.events.onTrouble(error.status, this.entries.length);
        this.#wake(this.pauseMs * (0.5 + Math.random() / 2));
        this.pauseMs = Math.min(LONGEST_PAUSE_MS, this.pauseMs * 2);
        return;
      }
      outcome = () => this.#refuse(entry, error.message);
    }
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.sending = null;
    this.isInTrouble = false;
    this.pauseMs = FIRST_PAUSE_MS;
    this.events.onWell();
    outcome();
    this.#wake();
  }

  /** The server refuses an entry: keep it, with the reason, until the labeller has read it. */
  #refuse(entry, reason) {
    const counted = entry.blind && /\/(skip|postpone)$/.test(entry.url); // it was sent when its page was closed
    if (counted) return this.#forget(entry);
    entry.refused = reason;
    this.#keep(entry);
    this.events.onRefused(entry, reason);
  }
}
