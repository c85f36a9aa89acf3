// The next query: it is there before it is wanted, and exchanged while nobody has seen it.

import { Failure, post } from "./outbox.js";
import { announce, read, show, showIdle, showProgress, showTrouble } from "./stage.js";
import { base, by, formToken, state, strict } from "./state.js";

const WAIT_S = 20;
const RETRY_MS = 1500;

let fetching = false;
let refreshing = false;
let exchanging = false;

function have() {
  const articles = [...(state.current === null || state.correcting !== null ? [] : [state.current]), ...state.upcoming, ...(state.held ? [state.held] : [])];
  return [...articles.map((each) => each.dataset.name), ...state.outbox.names()];
}

export async function fetchNext() {
  const wanted = state.current === null ? 1 : strict ? 0 : 1;
  if (strict && state.outbox.size > 0) return; // the tree must know the answer first: taken or refused, it calls again
  if (fetching || exchanging || state.paused || state.stopped || state.upcoming.length >= wanted) return;
  fetching = true;
  let again = 0;
  try {
    const reply = await post(`${base}/next`, { have: have(), wait_s: WAIT_S }, formToken);
    if (state.outbox.size === 0) by("away").hidden = true;
    showProgress(reply.progress);
    if (reply.html) {
      const article = read(reply.html);
      if (!have().includes(article.dataset.name)) state.upcoming.push(article);
    } else {
      if (state.outbox.size > 0) state.outbox.flush(); // what waits may be what the next query waits for
      showIdle(reply.why);
      again = state.current === null ? RETRY_MS : 4 * RETRY_MS;
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (state.outbox.size === 0 || state.current === null) showTrouble(error.status, state.outbox.size);
    if (state.current === null) showIdle("The next query comes when the server is back.");
    again = RETRY_MS;
  } finally {
    fetching = false;
  }
  showNext();
  setTimeout(fetchNext, again);
}

export async function refreshUnseen() {
  if (refreshing || strict || state.upcoming.length === 0) return;
  refreshing = true;
  try {
    const { newer } = await post(`${base}/grown`, { wait_s: 5 }, formToken);
    if (newer && state.upcoming.length > 0) await exchange(state.upcoming.shift());
  } catch (error) {
    if (!(error instanceof Failure)) throw error; // a query that is less apt is a query too
  } finally {
    refreshing = exchanging = false;
  }
  showNext();
  fetchNext();
}

/** From here until the answer nobody can be shown the query: it is given back. */
async function exchange(unseen) {
  exchanging = true;
  const reply = await post(`${base}/exchange`, { unseen: unseen.dataset.name }, formToken);
  showProgress(reply.progress);
  if (reply.html) state.upcoming.unshift(read(reply.html));
}

export function showNext() {
  if (state.current !== null || state.upcoming.length === 0) return;
  show(state.upcoming.shift());
  announce(`${state.gone}Next: ${state.current.dataset.instance}.`);
  state.gone = "";
}
