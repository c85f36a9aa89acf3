// The labelling page: keys and clicks, and how it begins.

import { back, leaveCorrection, sendAnswer } from "./answers.js";
import { clockOn } from "./clock.js";
import { isSingle, keyOf, keysAreOn, switchKeys } from "./keys.js";
import { answerOf, closePanels, openPanel, panel, showNear } from "./panels.js";
import { quit, startPresence } from "./presence.js";
import { announce, show, showIdle } from "./stage.js";
import { base, by, state, unseenMs } from "./state.js";
import { fetchNext } from "./supply.js";

const stage = by("stage");

function sendForm(form) {
  const answer = answerOf(form);
  if (answer !== null) sendAnswer(answer.act, answer.label);
}

stage.addEventListener("toggle", showNear, true);

stage.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = event.submitter?.name === "class" ? event.submitter.value : null;
  if (state.current === null) return;
  if (chosen !== null) sendAnswer("answer", chosen);
  else sendForm(event.target);
});

function pressed(event) {
  state.seenAt = Date.now();
  const key = keyOf(event);
  if (event.key === "Escape" && state.current !== null && !by("help").open) {
    const open = state.current.querySelector("details.panel[open]");
    if (open) {
      open.open = false;
      state.current.querySelector("h1").focus();
    } else if (state.correcting) leaveCorrection();
    return;
  }
  if (event.key === "Enter" && event.target.matches?.(".comment-text")) {
    event.preventDefault();
    closePanels(state.current);
    state.current.querySelector("h1").focus();
    return announce("The comment goes with your next answer.");
  }
  if (!isSingle(event) || !keysAreOn() || by("help").open) return;
  if (key === "?") return openHelp();
  if (key === "a" && !base.startsWith("/m/-/")) return location.assign(`${base}/history`);
  if (state.current === null) {
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
  if (performance.now() - state.shownAt < unseenMs) return;
  const button = [...state.current.querySelectorAll("button[data-key]")].find((each) => each.dataset.key === key);
  if (button) {
    event.preventDefault();
    if (state.correcting && key === "k") return leaveCorrection();
    button.click();
  } else if (key === "s" || key === "u" || key === "c") {
    event.preventDefault();
    openPanel(key);
  } else if (key === "n") {
    const near = state.current.querySelector(".near");
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
document.addEventListener("visibilitychange", clockOn);
addEventListener("pagehide", () => state.outbox.leave());
addEventListener("focus", clockOn);
addEventListener("blur", clockOn);

by("keys-switch").hidden = by("help-open").hidden = false;
showKeys();
const first = stage.querySelector("article");
if (first !== null && !state.outbox.names().includes(first.dataset.name)) show(first);
else if (first !== null) {
  stage.replaceChildren();
  showIdle("The next query is on its way.");
}
state.outbox.start();
fetchNext();
startPresence();
