// The next query: it is there before it is wanted, and exchanged while nobody has seen it.

import { Failure, post } from "./outbox.js";
import { announce, read, show, showIdle, showProgress, showTrouble } from "./stage.js";
import { ahead, base, by, formToken, page, state, strict } from "./state.js";

const WAIT_S = 20;
const RETRY_MS = 1500;

let fetching = false;
let refreshing = false;
let exchanging = false;
let timer = 0;

/** The queries that the page has. */
export function have() {
  const articles = [...(state.current === null || state.correcting !== null ? [] : [state.current]), ...state.upcoming, ...(state.held ? [state.held] : [])];
  return [...articles.map((each) => each.dataset.name), ...state.outbox.names()];
}

/** The queries of a reply that the page does not have. One whose lease had ended was leased again: the same, with another token. */
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
  if (strict && state.outbox.size > 0) return; // the tree must know the answer first: taken or refused, it calls again
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
      if (state.outbox.size > 0) state.outbox.flush(); // what waits may be what the next query waits for
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
    // Not beside a request for more: that does not name what the exchange leases, and may bring it again once it is answered.
    if (newer && !fetching && state.upcoming.length > 0) await exchange(state.upcoming.splice(0, 2));
  } catch (error) {
    if (!(error instanceof Failure)) throw error; // a query that is less apt is a query too
  } finally {
    refreshing = exchanging = false;
  }
  showNext();
  fetchNext();
}

/**
 * The next query and the oldest of those after it, for the two that the newest tree asks first: one is next, the other last.
 * From here until the answer nobody can be shown the exchanged ones: they are given back.
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
