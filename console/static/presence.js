// Extends leases while the labeller is active, and gives them back otherwise.

import { interruptTyping } from "./glance.js";
import { post } from "./outbox.js";
import { showSaid } from "./said.js";
import { announce, showIdle } from "./stage.js";
import { base, by, formToken, leaseMs, page, state } from "./state.js";
import { fetchNext, have, showNext } from "./supply.js";

const AWAY_MS = 5 * 60 * 1000;

export async function quit() {
  state.stopped = true;
  state.outbox.flush();
  const names = [state.current, state.held, ...state.upcoming].filter((each) => each !== null);
  for (const each of names) {
    const body = { query: each.dataset.name, lease_token: each.dataset.token };
    await post(`${base}/release`, body, formToken).catch(() => null); // otherwise the lease expires by itself
  }
  location.assign("/");
}

async function beat(claim = false) {
  if (state.paused || state.stopped || (document.visibilityState !== "visible" && !claim)) return;
  if (Date.now() - state.seenAt > AWAY_MS) return pause();
  let reply;
  try {
    reply = await post(`${base}/beat`, { page, have: have(), claim }, formToken);
  } catch {
    return; // the next heartbeat may succeed
  }
  const gone = [...reply.lost, ...reply.elsewhere];
  state.upcoming = state.upcoming.filter((each) => !gone.includes(each.dataset.name));
  if (state.current !== null && state.correcting === null && gone.includes(state.current.dataset.name)) {
    const { instance, name } = state.current.dataset;
    state.gone = reply.elsewhere.includes(name)
      ? `${instance} is open on another page of yours. `
      : `${instance} is no longer yours: another labeller has it, or the query was withdrawn. `;
    state.current = null;
    interruptTyping();
    announce(state.gone.trim());
    showIdle("The next query is on its way.");
    showNext();
  }
  fetchNext();
}

async function pause() {
  state.paused = true;
  state.outbox.flush();
  const names = [state.current, state.held, ...state.upcoming].filter((each) => each !== null && !(each === state.current && state.correcting !== null));
  state.current = state.held = null;
  state.correcting = null;
  state.upcoming = [];
  showSaid();
  by("stage").replaceChildren();
  announce("");
  by("idle").hidden = true;
  by("paused").hidden = false;
  for (const each of names) {
    const body = { query: each.dataset.name, lease_token: each.dataset.token };
    await post(`${base}/release`, body, formToken).catch(() => null);
  }
}

function goOn() {
  state.paused = false;
  state.seenAt = Date.now();
  by("paused").hidden = true;
  showIdle("The next query is on its way.");
  fetchNext();
}

/** The page is closed: the next one may show its queries. */
function leave() {
  const headers = { "Content-Type": "application/json", Accept: "application/json", "X-Form-Token": formToken };
  fetch(`${base}/leave`, { method: "POST", headers, body: JSON.stringify({ page, shown: state.current?.dataset.name ?? "" }), keepalive: true }).catch(() => null);
}

export function startPresence() {
  beat(true); // the page's first query may be open on another page
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => beat());
  addEventListener("pageshow", (event) => event.persisted && beat(true));
  by("go-on").addEventListener("click", goOn);
  document.addEventListener("pointerdown", () => (state.seenAt = Date.now()));
  setInterval(() => beat(), leaseMs / 3);
}
