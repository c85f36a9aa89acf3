// A labeller's answers: they wait in the outbox, where they can be taken back; once sent, they can be corrected.

import { tookSeconds } from "./clock.js";
import { Outbox } from "./outbox.js";
import { closePanels } from "./panels.js";
import { addStep, dropStep, showSaid, stepBack, stepOf } from "./said.js";
import { announce, show, showIdle, showRefused, showTrouble } from "./stage.js";
import { base, by, delayMs, formToken, labeller, state, strict } from "./state.js";
import { fetchNext, refreshUnseen } from "./supply.js";

state.outbox = new Outbox(labeller, formToken, {
  onTaken: taken,
  onRefused(entry, reason) {
    const step = stepOf(entry);
    if (step !== null && step !== state.correcting) dropStep(step); // it was not stored
    announce(`${entry.description} was not accepted.`);
    showRefused(entry, reason, () => state.outbox.dismiss(entry));
    fetchNext();
  },
  onTrouble: showTrouble,
  onWell() {
    by("away").hidden = true;
  },
  onUnkept() {
    by("unkept").hidden = false;
  },
});

const PAINT_MS = 100;

/** The words for an answer without a label: those on its button. */
function nameOf(article, act) {
  if (act === "undo") return "taken back";
  return article.querySelector(`form[data-act="${act}"] span`).textContent;
}

function wordsOf(label) {
  if (typeof label === "string") return label;
  if (Array.isArray(label)) return label.join(" or ");
  return Object.entries(label)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

/** The button of the only class that a label names, with any certainty; undefined if it names none or several. */
function buttonOf(article, label) {
  const possible = label !== null && typeof label === "object" && !Array.isArray(label) ? Object.keys(label).filter((name) => label[name] === 1) : [label];
  return possible.length === 1 ? [...article.querySelectorAll("button.class")].find((each) => each.value === possible[0]) : undefined;
}

/** The class's mark in the style sheet; empty if the label is not a single class. */
function markOf(button) {
  return button ? `mark ${[...button.classList].find((each) => each.startsWith("mark-"))}` : "";
}

/** Submit an answer, or a correction of an earlier one; a label with less than full certainty comes with its description. */
export function sendAnswer(act, label = null, inWords = null) {
  const article = state.current;
  const corrected = state.correcting;
  if (state.outbox.isFull) return announce(`${state.outbox.size} answers wait for the server: no more are accepted until it is back.`);
  const comment = article.querySelector(".comment-text").value.trim();
  const { name, token, uid, shown, instance } = article.dataset;
  const body = { query: name, lease_token: token, model_uid: uid, shown, comment };
  if (label !== null) body.label = label;
  if (corrected === null) body.took_s = tookSeconds();
  const doing = corrected === null ? act : act === "refuse" ? "undo" : "correct";
  const words = label === null ? nameOf(article, doing) : (inWords ?? wordsOf(label));
  const description = `${instance}: ${words}`;
  state.outbox.flush(); // the previous answer is final now
  const waits = corrected === null ? delayMs : 0;
  const entry = state.outbox.add(`${base}/${doing}`, body, description, waits);
  closePanels(article);
  if (corrected !== null) by("earlier").hidden = true;
  state.current = null;
  state.correcting = null;
  const step = { entry, article, words, label, mark: markOf(buttonOf(article, label)), isAnswer: doing !== "skip" && doing !== "postpone" };
  if (corrected === null) addStep(step);
  else if (doing === "undo") dropStep(corrected);
  else Object.assign(corrected, step);
  showSaid();
  if (state.held !== null) {
    state.upcoming.unshift(state.held);
    state.held = null;
  }
  const seconds = waits / 1000;
  announce(
    corrected === null ? `${description}. Sending in ${seconds} s; undo takes it back.` : `${description}. Sent as a correction.`,
  );
  if (state.upcoming.length > 0 && !strict) show(state.upcoming.shift());
  else {
    by("stage").replaceChildren();
    if (strict) state.outbox.flush();
    showIdle("The next query is on its way.");
  }
  if (state.current === null) fetchNext();
  else setTimeout(fetchNext, PAINT_MS); // after the next query has been painted
}

function taken(entry, report) {
  const step = stepOf(entry);
  if (report.conflict) announce(`${entry.description}: saved. It contradicts the earlier evidence, and replaces it.`);
  else if (report.wants_more) announce(`${entry.description}: saved. Others are asked about it too.`);
  else if (step !== null && step === state.said.at(-1)) announce(`${entry.description}. Saved.`);
  if (step !== null && !step.isAnswer) dropStep(step);
  if (state.current === null) fetchNext();
  else refreshUnseen();
}

/** Go one step back: to the newest answer, from there to the one before it, and so on. */
export function back() {
  const step = stepBack();
  if (step !== null) return reopen(step);
  const earlier = by("said").querySelector("a"); // the page for correcting answers of earlier sessions
  if (state.correcting === null && earlier !== null) return location.assign(earlier.href);
  announce("There is no earlier answer in this session.");
}

/** Show the query of an earlier answer again: an unsent answer is taken back, a sent one can be corrected. */
export function reopen(step) {
  if (step === state.correcting) return;
  const { entry, article, isAnswer } = step;
  if (state.outbox.takeBack(entry.id)) {
    if (state.correcting !== null) endCorrection();
    else if (state.current !== null) state.upcoming.unshift(state.current);
    if (state.held !== null) state.upcoming.unshift(state.held);
    state.held = null;
    dropStep(step);
    show(article);
    return announce(`Taken back before it was sent: ${entry.description}.`);
  }
  if (!isAnswer) return announce("That cannot be taken back any more.");
  if (state.correcting !== null) endCorrection();
  else if (state.current !== null) state.held = state.current;
  show(article);
  state.correcting = step;
  showSaid();
  showCorrection(step);
}

/** Show what is being corrected, without the model's guess and its reason, which were about an answered question. */
function showCorrection({ article, label, words }) {
  article.classList.add("correcting");
  for (const each of article.querySelectorAll(".guess, .why, .why-open")) each.remove();
  const guessed = article.querySelector(".guessed");
  if (guessed !== null) {
    guessed.classList.remove("guessed");
    guessed.removeAttribute("aria-description");
    guessed.setAttribute("aria-keyshortcuts", guessed.getAttribute("aria-keyshortcuts").replace(/ Enter$/, ""));
  }
  article.querySelector(".class[aria-current]")?.removeAttribute("aria-current");
  buttonOf(article, label)?.setAttribute("aria-current", "true");
  by("earlier-said").textContent = `You said: ${words}, ${article.dataset.instance}. Give another answer, or:`;
  by("earlier").hidden = false;
  announce(`You said: ${words}, ${article.dataset.instance}.`);
}

/** Take back an answer that was sent. */
export function takeBackCorrected() {
  sendAnswer("refuse");
}

function endCorrection() {
  by("earlier").hidden = true;
  state.current = null;
  state.correcting = null;
}

export function leaveCorrection() {
  announce(`Unchanged: ${state.correcting.entry.description}.`);
  endCorrection();
  showSaid();
  const next = state.held ?? state.upcoming.shift() ?? null;
  state.held = null;
  if (next !== null) show(next);
  else showIdle("The next query is on its way.");
  fetchNext();
}
