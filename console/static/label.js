// The labelling page: shows the query that is there already, takes keys, keeps answers until they are sent.

import { isSingle, keyOf, keysAreOn, switchKeys } from "./keys.js";
import { Failure, Outbox, post } from "./outbox.js";

const UNSEEN_MS = 250; // keys pressed before a query could be seen are no answer to it
const AWAY_MS = 5 * 60 * 1000;
const WAIT_S = 20;
const RETRY_MS = 1500;

const desk = document.getElementById("desk");
const { base, formToken, labeller } = desk.dataset;
const delayMs = Number(desk.dataset.delay) * 1000;
const leaseMs = Number(desk.dataset.lease) * 1000;
const strict = desk.dataset.strict !== "";
const by = (id) => document.getElementById(id);
const stage = by("stage");

let current = null; // the article that is shown
let upcoming = []; // articles that nobody saw yet
let latest = null; // { entry, article, taken }: what was said last
let correcting = false;
let fetching = false;
let refreshing = false;
let exchanging = false;
let paused = false;
let stopped = false;
let shownAt = 0;
let visibleMs = 0;
let visibleSince = null;
let seenAt = Date.now();

const outbox = new Outbox(`quercus-outbox:${labeller}:${base}`, formToken, {
  onTaken: taken,
  onRefused(entry, reason) {
    const line = document.createElement("li");
    line.textContent = `${entry.said} was not taken: ${reason}`;
    by("refused").append(line);
    by("refused").hidden = false;
    fetchNext();
  },
  onTrouble: showTrouble,
  onWell() {
    by("away").hidden = true;
  },
});

function showTrouble(status, count) {
  const away = by("away");
  const kept = count === 1 ? "1 answer is kept" : `${count} answers are kept`;
  away.replaceChildren();
  if (status === 401 || status === 403) {
    const link = document.createElement("a");
    link.href = status === 401 ? `/sign-in?next=${encodeURIComponent(location.pathname)}` : location.href;
    link.textContent = status === 401 ? "Sign in again" : "Load the page again";
    away.append(link, count ? `: ${kept} until then.` : ".");
  } else {
    away.textContent = count
      ? `The server is away. ${kept} here and sent when it is back; you may go on.`
      : "The server is away. The next query comes when it is back.";
  }
  away.hidden = false;
}

// Time: what was visible and in focus, not what passed while the labeller was elsewhere.

function clockOn() {
  const on = document.visibilityState === "visible" && document.hasFocus();
  if (on && visibleSince === null) visibleSince = performance.now();
  if (!on && visibleSince !== null) {
    visibleMs += performance.now() - visibleSince;
    visibleSince = null;
  }
}

function tookSeconds() {
  return (visibleMs + (visibleSince === null ? 0 : performance.now() - visibleSince)) / 1000;
}

// Showing

function read(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // made by the console's own templates, which escape all that is not theirs
  return holder.content.querySelector("article");
}

function show(article) {
  current = article;
  correcting = false;
  by("idle").hidden = true;
  stage.replaceChildren(article);
  visibleMs = 0;
  visibleSince = null;
  clockOn();
  shownAt = performance.now();
  article.querySelector("h1").focus({ preventScroll: false });
  scrollTo(0, 0);
}

function showIdle(why) {
  if (paused || current !== null) return;
  const idle = by("idle");
  const was = idle.hidden;
  stage.replaceChildren();
  by("idle-why").textContent = why;
  idle.hidden = false;
  if (was) idle.querySelector("h1").focus();
}

function showProgress(progress) {
  if (!progress) return;
  const bar = by("progress").querySelector("progress");
  bar.max = progress.budget || 1;
  bar.value = progress.answered;
  by("progress").querySelector("span").textContent =
    `${progress.answered.toLocaleString("en")} of ${progress.budget.toLocaleString("en")} answers`;
}

function announce(text) {
  by("status").textContent = text;
}

// Fetching: one query ahead, refreshed while nobody has seen it

function have() {
  const articles = [...(current === null || correcting ? [] : [current]), ...upcoming, ...(held ? [held] : [])];
  return [...articles.map((each) => each.dataset.name), ...outbox.names()];
}

let held = null; // the query that was left to correct an earlier answer

async function fetchNext() {
  const wanted = current === null ? 1 : strict ? 0 : 1;
  if (strict && outbox.size > 0) return; // the tree must know the answer first: taken or refused, it calls again
  if (fetching || exchanging || paused || stopped || upcoming.length >= wanted) return;
  fetching = true;
  let again = 0;
  try {
    const found = await post(`${base}/next`, { have: have(), wait_s: WAIT_S }, formToken);
    if (outbox.size === 0) by("away").hidden = true;
    showProgress(found.progress);
    if (found.html) {
      const article = read(found.html);
      if (!have().includes(article.dataset.name)) upcoming.push(article);
    } else {
      if (outbox.size > 0) outbox.flush(); // what waits may be what the next query waits for
      showIdle(found.why);
      again = current === null ? RETRY_MS : 4 * RETRY_MS;
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (outbox.size === 0 || current === null) showTrouble(error.status, outbox.size);
    if (current === null) showIdle("The next query comes when the server is back.");
    again = RETRY_MS;
  } finally {
    fetching = false;
  }
  showNext();
  setTimeout(fetchNext, again);
}

async function refreshUnseen() {
  if (refreshing || strict || upcoming.length === 0) return;
  refreshing = true;
  try {
    const { newer } = await post(`${base}/grown`, { wait_s: 5 }, formToken);
    if (newer && upcoming.length > 0) await exchange(upcoming.shift());
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
  const found = await post(`${base}/exchange`, { unseen: unseen.dataset.name }, formToken);
  showProgress(found.progress);
  if (found.html) upcoming.unshift(read(found.html));
}

function showNext() {
  if (current !== null || upcoming.length === 0) return;
  show(upcoming.shift());
  announce(`Next: ${current.dataset.instance}.`);
}

// Saying

const WORDS = { refuse: "Refused", skip: "Skipped", postpone: "Postponed", undo: "Taken back" };

function wordsOf(label) {
  if (typeof label === "string") return label;
  if (Array.isArray(label)) return label.join(" or ");
  return Object.entries(label)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

function say(act, label = null) {
  const article = current;
  const comment = article.querySelector(".comment-text").value.trim();
  const body = { query: article.dataset.name, lease_token: article.dataset.token, comment };
  if (label !== null) body.label = label;
  if (!correcting) body.took_s = tookSeconds();
  const doing = correcting ? (act === "refuse" ? "undo" : "correct") : act;
  const said = `${label === null ? WORDS[doing] : wordsOf(label)}, ${article.dataset.instance}`;
  outbox.flush(); // the answer before this one is final
  const waits = correcting ? 0 : delayMs;
  const entry = outbox.add(`${base}/${doing}`, body, said, waits);
  if (doing === "skip" || doing === "postpone") latest = { entry, article, undoable: true };
  else latest = { entry, article, label: doing === "undo" ? null : label, correctable: doing !== "undo" };
  by("back").hidden = false;
  closePanels(article);
  const seconds = (waits / 1000).toLocaleString("en");
  announce(correcting ? `${said}. Sent as a correction.` : `${said}. Sending in ${seconds} s; b takes it back at no cost.`);
  current = null;
  if (held !== null) {
    upcoming.unshift(held);
    held = null;
  }
  correcting = false;
  if (upcoming.length > 0 && !strict) show(upcoming.shift());
  else {
    stage.replaceChildren();
    if (strict) outbox.flush();
    showIdle("The next query is on its way.");
  }
  fetchNext();
}

function taken(entry, report) {
  if (report.conflict) announce(`${entry.said}: kept. It contradicts the earlier evidence, and replaces it.`);
  else if (report.wants_more) announce(`${entry.said}: kept. Others are asked about it too.`);
  else if (latest !== null && latest.entry.id === entry.id) announce(`${entry.said}: kept.`);
  if (latest !== null && latest.entry.id === entry.id && latest.undoable) {
    latest = null;
    by("back").hidden = true;
  }
  if (current === null) fetchNext();
  else refreshUnseen();
}

function back() {
  if (latest === null || correcting) return announce("There is no earlier answer in this session.");
  const { entry, article } = latest;
  const note = article.querySelector(".earlier");
  if (outbox.takeBack(entry.id)) {
    if (current !== null) upcoming.unshift(current);
    latest = null;
    by("back").hidden = true;
    show(article);
    return announce(`Taken back as if it was never said: ${entry.said}.`);
  }
  if (!latest.correctable) return announce("That cannot be taken back any more.");
  if (current !== null) held = current;
  show(article);
  correcting = true;
  note.textContent = `You said: ${entry.said}. Give another answer, or r to take it back; Escape leaves it as it is.`;
  note.hidden = false;
  announce(note.textContent);
}

function leaveCorrection() {
  current.querySelector(".earlier").hidden = true;
  current = null;
  correcting = false;
  const next = held ?? upcoming.shift() ?? null;
  held = null;
  if (next !== null) show(next);
  else showIdle("The next query is on its way.");
  fetchNext();
}

// Panels and keys

function panel(name) {
  return current.querySelector(`details[data-panel="${name}"]`);
}

function closePanels(article) {
  for (const each of article.querySelectorAll("details.panel")) each.open = false;
}

function openPanel(name) {
  const opened = panel(name);
  const others = current.querySelectorAll("details.panel");
  for (const each of others) each.open = each === opened && !each.open;
  if (opened.open) opened.querySelector("input:not([type=hidden])").focus();
}

function sendForm(form) {
  const act = form.dataset.act ?? "answer";
  if (act !== "answer") return say(act);
  const data = new FormData(form);
  if (form.classList.contains("set")) {
    const several = data.getAll("several");
    if (several.length === 0) return announce("Choose at least one class.");
    return say("answer", several);
  }
  const grades = {};
  for (const input of form.querySelectorAll("input[data-class]")) grades[input.dataset.class] = Number(input.value);
  if (Object.values(grades).every((value) => value === 0)) {
    return announce("All are 0, but some class must be possible. If nobody can tell, refuse.");
  }
  return say("answer", grades);
}

stage.addEventListener("toggle", showNear, true);

async function showNear(event) {
  const near = event.target;
  if (!near.open || !near.matches(".near") || near.dataset.asked) return;
  near.dataset.asked = "yes";
  const rows = near.querySelector(".near-rows");
  const response = await fetch(near.dataset.url).catch(() => null);
  if (response?.ok) rows.innerHTML = await response.text(); // of our own templates
  else rows.textContent = "They cannot be shown now.";
}

stage.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = event.submitter?.name === "class" ? event.submitter.value : null;
  if (current === null) return;
  if (chosen !== null) say("answer", chosen);
  else sendForm(event.target);
});

function pressed(event) {
  seenAt = Date.now();
  const key = keyOf(event);
  if (event.key === "Escape" && current !== null && !by("help").open) {
    const open = current.querySelector("details.panel[open]");
    if (open) {
      open.open = false;
      current.querySelector("h1").focus();
    } else if (correcting) leaveCorrection();
    return;
  }
  if (event.key === "Enter" && event.target.matches?.(".comment-text")) {
    event.preventDefault();
    closePanels(current);
    current.querySelector("h1").focus();
    return announce("The comment goes with your next answer.");
  }
  if (!isSingle(event) || !keysAreOn() || by("help").open) return;
  if (key === "?") return openHelp();
  if (key === "a" && !base.startsWith("/m/-/")) return location.assign(`${base}/history`);
  if (current === null) {
    if (key === "b" || key === "z") back();
    return;
  }
  const set = panel("s");
  if (set.open) {
    const box = [...set.querySelectorAll("input[type=checkbox]")].find((each) => each.dataset.key === key);
    if (box) {
      box.checked = !box.checked;
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.target.closest("button, summary, a")) return sendForm(set.querySelector("form"));
  }
  if (key === "b" || key === "z") return back(); // it is about the query before, so it may come at once
  if (performance.now() - shownAt < UNSEEN_MS) return;
  const button = [...current.querySelectorAll("button[data-key]")].find((each) => each.dataset.key === key);
  if (button) {
    event.preventDefault();
    if (correcting && key === "k") return leaveCorrection();
    button.click();
  } else if (key === "s" || key === "u" || key === "c") {
    event.preventDefault();
    openPanel(key);
  } else if (key === "n") {
    const near = current.querySelector(".near");
    if (near !== null) near.open = !near.open;
  } else if (key === "w") {
    openHelp();
    by("words").scrollIntoView();
  } else if (key === "q") {
    quit();
  }
}

function openHelp() {
  by("help").showModal();
  by("help-title").focus();
}

async function quit() {
  stopped = true;
  outbox.flush();
  const names = [current, held, ...upcoming].filter((each) => each !== null);
  for (const each of names) {
    const body = { query: each.dataset.name, lease_token: each.dataset.token };
    await post(`${base}/release`, body, formToken).catch(() => null); // its lease ends by itself
  }
  location.assign("/");
}

// Life: leases are kept while somebody is here

async function beat() {
  if (paused || stopped || document.visibilityState !== "visible") return;
  if (Date.now() - seenAt > AWAY_MS) return pause();
  let found;
  try {
    found = await post(`${base}/beat`, {}, formToken);
  } catch {
    return; // the next beat may come through
  }
  upcoming = upcoming.filter((each) => !found.lost.includes(each.dataset.name));
  if (current !== null && !correcting && found.lost.includes(current.dataset.name)) {
    announce(`${current.dataset.instance} is not yours any more: another took it, or it is not asked any more.`);
    current = null;
    if (upcoming.length > 0) show(upcoming.shift());
    else showIdle("The next query is on its way.");
  }
  fetchNext();
}

async function pause() {
  paused = true;
  outbox.flush();
  const names = [current, held, ...upcoming].filter((each) => each !== null && !(each === current && correcting));
  current = held = null;
  correcting = false;
  upcoming = [];
  stage.replaceChildren();
  by("idle").hidden = true;
  by("paused").hidden = false;
  for (const each of names) {
    const body = { query: each.dataset.name, lease_token: each.dataset.token };
    await post(`${base}/release`, body, formToken).catch(() => null);
  }
}

by("go-on").addEventListener("click", () => {
  paused = false;
  seenAt = Date.now();
  by("paused").hidden = true;
  showIdle("The next query is on its way.");
  fetchNext();
});

function showKeys() {
  const button = by("keys-switch");
  button.textContent = keysAreOn() ? "keys: on" : "keys: off";
  button.setAttribute("aria-pressed", String(keysAreOn()));
}

by("keys-switch").addEventListener("click", () => {
  switchKeys(!keysAreOn());
  showKeys();
});
by("back").addEventListener("click", back);
by("help-open").addEventListener("click", openHelp);
by("help-close").addEventListener("click", () => by("help").close());
document.addEventListener("keydown", pressed);
document.addEventListener("pointerdown", () => (seenAt = Date.now()));
document.addEventListener("visibilitychange", clockOn);
addEventListener("pagehide", () => outbox.leave());
addEventListener("focus", clockOn);
addEventListener("blur", clockOn);

by("keys-switch").hidden = by("help-open").hidden = false;
showKeys();
const first = stage.querySelector("article");
if (first !== null && !outbox.names().includes(first.dataset.name)) show(first);
else if (first !== null) {
  stage.replaceChildren();
  showIdle("The next query is on its way.");
}
outbox.start();
fetchNext();
setInterval(beat, leaseMs / 3);
