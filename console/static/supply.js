// Fetches queries in advance, and exchanges them while they are unseen.

import { Failure, post } from "./outbox.js";
import { announce, read, show, showIdle, showProgress, showTrouble } from "./stage.js";
import { ahead, base, by, formToken, page, state, strict } from "./state.js";

const WAIT_S = 20;
const RETRY_MS = 1500;

let fetching = false;
let refreshing = false;
let exchanging = false;
let timer = 0;

/** The names of the page's queries. */
export function have() {
  const articles = [...(state.current === null || state.correcting !== null ? [] : [state.current]), ...state.upcoming, ...(state.held ? [state.held] : [])];
  return [...articles.map((each) => each.dataset.name), ...state.outbox.names()];
}

/** The new queries in a reply. A known query whose lease had ended was leased again: it gets its new token. */
function takeNew(queries) {
  const articles = queries.map(({ html }) => read(html));
  for (const { dataset } of articles) {
    for (const each of [state.current, state.held, ...state.upcoming]) if (each?.dataset.name === dataset.name) each.dataset.token = dataset.token;
  }
  const had = have();
  return articles.filter((each) => !had.includes(each.dataset.name));
}

export async function fetchNext() {
  const wanted = Math.max(ahead, state.current === null ? 1 : 0);
  if (strict && state.outbox.size > 0) return; // the tree must learn the answer first; this is called again once it is accepted or refused
  if (fetching || exchanging || state.paused || state.stopped || state.upcoming.length >= wanted) return;
  fetching = true;
  let again = 0;
  try {
    const needed = state.current === null && state.upcoming.length === 0;
    const count = wanted - state.upcoming.length;
    const reply = await post(`${base}/next`, { page, have: have(), wait_s: needed || state.upcoming.length === 0 ? WAIT_S : 0, count }, formToken);
    if (state.outbox.size === 0) by("away").hidden = true;
    showProgress(reply.progress);
    state.upcoming.push(...takeNew(reply.queries));
    if (reply.queries.length === 0) {
      if (state.outbox.size > 0) state.outbox.flush(); // the next query may depend on unsent answers
      showIdle(reply.why);
    }
    if (reply.queries.length < count) again = state.current === null && state.upcoming.length === 0 ? RETRY_MS : 4 * RETRY_MS;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (state.outbox.size === 0 || state.current === null) showTrouble(error.status, state.outbox.size);
    if (state.current === null) showIdle("The next query comes when the server is back.");
    again = RETRY_MS;
  } finally {
    fetching = false;
  }
  showNext();
  clearTimeout(timer);
  timer = setTimeout(fetchNext, again);
}

export async function refreshUnseen() {
  if (refreshing || strict || state.upcoming.length === 0) return;
  refreshing = true;
  try {
    const { newer } = await post(`${base}/grown`, { wait_s: 5 }, formToken);
    // Not concurrently with a request for more, which does not list the exchange's queries and could return them again.
    if (newer && !fetching && state.upcoming.length > 0) await exchange(state.upcoming.splice(0, 2));
  } catch (error) {
    if (!(error instanceof Failure)) throw error; // keep the older query
  } finally {
    refreshing = exchanging = false;
  }
  showNext();
  fetchNext();
}

/**
 * Exchange the next query and the oldest one after it for the first two queries of the newest tree, which become the next and the
 * last one. The exchanged queries must not be shown while the request runs: they are given back.
 */
async function exchange(unseen) {
  exchanging = true;
  const reply = await post(`${base}/exchange`, { page, unseen: unseen.map((each) => each.dataset.name) }, formToken);
  showProgress(reply.progress);
  const [next, ...last] = takeNew(reply.queries);
  if (next) state.upcoming = [next, ...state.upcoming, ...last];
}

export function showNext() {
  if (state.current !== null || state.upcoming.length === 0) return;
  show(state.upcoming.shift());
  announce(`${state.gone}Next: ${state.current.dataset.instance}.`);
  state.gone = "";
}
