// The labelling page: start, keys and clicks.

import { back, leaveCorrection, reopen, sendAnswer, takeBackCorrected } from "./answers.js";
import { clockOn } from "./clock.js";
import { gradedLabel, nextGrade, showGrade } from "./grade.js";
import { isUnseen, notePress, noteSheet, paintedAt, stopStray } from "./glance.js";
import { unzoom, watchItem, zoom } from "./item.js";
import { isSingle, keysAreOn, keysOf, switchKeys } from "./keys.js";
import { answerOf, bringUp, closePanels, closeSheets, openPanel, opensPanel, panel, sayInvalid, selectNumber, setOthers, showNear } from "./panels.js";
import { quit, startPresence } from "./presence.js";
import { askBeforeSignOut } from "./sign_out.js";
import { announce, show, showIdle } from "./stage.js";
import { base, by, commands, state } from "./state.js";
import { fetchNext } from "./supply.js";

const stage = by("stage");

function sendForm(form) {
  const answer = answerOf(form);
  if (answer !== null) sendAnswer(answer.act, answer.label);
}

watchItem(stage);
stage.addEventListener("toggle", showNear, true);
stage.addEventListener("toggle", opensPanel, true);
stage.addEventListener("invalid", sayInvalid, true);
for (const each of ["pointerdown", "focusin", "click"]) stage.addEventListener(each, selectNumber);
document.addEventListener("pointerdown", notePress, true);
document.addEventListener("beforetoggle", noteSheet, true);
document.addEventListener("click", stopStray, true);

stage.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = event.submitter?.name === "class" ? event.submitter.value : null;
  if (state.current === null || isUnseen()) return;
  if (chosen !== null) {
    const { label, words } = gradedLabel(state.current, chosen);
    sendAnswer("answer", label, words);
  }
  else sendForm(event.target);
});

/** The class, or the name of the command, of a key for the shown query. */
function meaningOf(event) {
  const named = Object.entries(commands());
  for (const key of keysOf(event)) {
    const button = [...(state.current?.querySelectorAll("button.class") ?? [])].find((each) => each.dataset.keys.split(" ").includes(key));
    if (button) return { button };
    const command = named.find(([, keys]) => keys.includes(key));
    if (command) return { command: command[0] };
  }
  return {};
}

const ACTIONS = {
  grade: () => announce(`Your next answer: ${nextGrade()}.`),
  zoom: () => zoom(),
  set: () => openPanel("set"),
  plausibilities: () => openPanel("plausibilities"),
  comment: () => openPanel("comment"),
  refuse: () => clickAct("refuse"),
  skip: () => clickAct("skip"),
  postpone: () => clickAct("postpone"),
  neighbours: () => toggleBeside(".near.similar"),
  guidelines: () => toggleBeside(".near.guide"),
  words() {
    openHelp();
    by("words").scrollIntoView();
  },
  quit,
};

/** Open or close the information beside the item. */
function toggleBeside(which) {
  const beside = state.current.querySelector(which);
  if (beside === null) return;
  bringUp(beside);
  beside.open = !beside.open;
  if (beside.open) beside.scrollIntoView({ block: "nearest" });
}

/** In a correction these have no meaning, except that "nobody can tell" takes the answer back. */
function clickAct(act) {
  if (state.correcting !== null) return act === "refuse" ? takeBackCorrected() : undefined;
  state.current.querySelector(`form[data-act="${act}"] button`).click();
}

function leavePanel(open) {
  open.open = false;
  state.current.querySelector("h1").focus();
}

function pressed(event) {
  notePress(event);
  state.seenAt = Date.now();
  if (event.key === "Escape" && state.current !== null && !by("help").open) {
    if (unzoom()) return;
    const open = state.current.querySelector("details.panel[open]");
    if (open) leavePanel(open);
    else if (state.correcting !== null) leaveCorrection();
    return;
  }
  if (event.key === "Enter" && event.target.matches?.(".comment-text")) {
    event.preventDefault();
    closePanels(state.current);
    state.current.querySelector("h1").focus();
    return announce("The comment goes with your next answer.");
  }
  if (!isSingle(event) || !keysAreOn() || by("help").open) return;
  const { button, command } = meaningOf(event);
  if (button || command) event.preventDefault();
  if (command === "help") return openHelp();
  if (command === "own_answers") return base.startsWith("/m/-/") ? undefined : location.assign(`${base}/history`);
  if (command === "back") return back(); // it is about the previous query, so it counts at once
  if (state.current === null) return;
  const set = panel("set");
  if (set.open && event.key === "Enter" && !event.target.closest("button, summary, a")) return sendForm(set.querySelector("form"));
  if (event.key === "Enter" && acceptsGuess(event)) return;
  if ((!button && !command) || isUnseen()) return;
  if (command) return ACTIONS[command]();
  if (!set.open) return button.click();
  const box = set.querySelector(`input[value="${CSS.escape(button.value)}"]`);
  box.checked = !box.checked;
}

/** Answer with the model's guess, except in a correction, or if the focused element handles Enter itself. */
function acceptsGuess(event) {
  const guessed = state.current.querySelector("button.guessed");
  const isMeant = !event.target.closest("button, summary, a, label, [popover]") && state.current.querySelector(".panel[open]") === null;
  if (guessed === null || !isMeant || state.correcting !== null || isUnseen()) return false;
  event.preventDefault();
  guessed.click();
  return true;
}

function openHelp() {
  const rows = [...(state.current?.querySelectorAll("button.class") ?? [])].map((each) => {
    const row = document.createElement("tr");
    const head = row.appendChild(document.createElement("th"));
    head.scope = "row";
    head.append(Object.assign(document.createElement("kbd"), { textContent: each.querySelector("kbd").textContent }));
    row.append(Object.assign(document.createElement("td"), { textContent: each.value }));
    return row;
  });
  by("class-keys").replaceChildren(...rows);
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
stage.addEventListener("change", (event) => {
  if (event.target.matches(".others select")) setOthers(event.target);
  if (event.target.name !== "grade") return;
  showGrade(state.current);
  closeSheets();
});
stage.addEventListener("click", (event) => event.target.closest(".cancel") && leavePanel(event.target.closest(".panel")));
by("take-back").addEventListener("click", () => !isUnseen() && takeBackCorrected());
by("leave-it").addEventListener("click", leaveCorrection);
by("said").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null || event.detail >= 2) return;
  closeSheets();
  reopen(state.said[Number(button.dataset.place)]);
});
by("back").addEventListener("click", (event) => event.detail < 2 && back()); // a double click counts once
by("help-open").addEventListener("click", openHelp);
by("help-close").addEventListener("click", () => by("help").close());
document.addEventListener("visibilitychange", clockOn);
addEventListener("pagehide", () => state.outbox.leave());
addEventListener("beforeunload", (event) => {
  if (state.outbox.isStuck && !state.mayLeave) event.preventDefault();
});
askBeforeSignOut(
  state.outbox,
  () => state.outbox.size,
  () => (state.mayLeave = true),
);
addEventListener("focus", clockOn);
addEventListener("blur", clockOn);

await state.outbox.start(); // so that queries answered on an earlier page are not shown again
const first = stage.querySelector("article");
if (first !== null && !state.outbox.names().includes(first.dataset.name)) show(first, paintedAt());
else if (first !== null) {
  stage.replaceChildren();
  showIdle("The next query is on its way.");
}
takeKeys(pressed);
by("keys-switch").hidden = by("help-open").hidden = false;
by("back").hidden = by("said").children.length === 0;
showKeys();
startPresence();
fetchNext();
