// A labeller's answer: it waits in the outbox, where it can be taken back; later it is corrected.

import { tookSeconds } from "./clock.js";
import { Outbox } from "./outbox.js";
import { closePanels } from "./panels.js";
import { announce, show, showIdle, showRefused, showTrouble } from "./stage.js";
import { base, by, delayMs, formToken, keyOf, labeller, state, strict } from "./state.js";
import { fetchNext, refreshUnseen } from "./supply.js";

state.outbox = new Outbox(labeller, formToken, {
  onTaken: taken,
  onRefused(entry, reason) {
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

const WORDS = { refuse: "Refused", skip: "Skipped", postpone: "Postponed", undo: "Taken back" };

function wordsOf(label) {
  if (typeof label === "string") return label;
  if (Array.isArray(label)) return label.join(" or ");
  return Object.entries(label)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

export function sendAnswer(act, label = null) {
  const article = state.current;
  const corrects = state.correcting;
  if (state.outbox.isFull) return announce(`${state.outbox.size} answers wait for the server: no more are taken until it is back.`);
  if (corrects && (act === "skip" || act === "postpone")) return leaveCorrection();
  const comment = article.querySelector(".comment-text").value.trim();
  const { name, token, uid, shown, instance } = article.dataset;
  const body = { query: name, lease_token: token, model_uid: uid, shown, comment };
  if (label !== null) body.label = label;
  if (!corrects) body.took_s = tookSeconds();
  const doing = corrects ? (act === "refuse" ? "undo" : "correct") : act;
  const description = `${label === null ? WORDS[doing] : wordsOf(label)}, ${instance}`;
  state.outbox.flush(); // the answer before this one is final
  const waits = corrects ? 0 : delayMs;
  const entry = state.outbox.add(`${base}/${doing}`, body, description, waits);
  if (doing === "skip" || doing === "postpone") state.latest = { entry, article, undoable: true };
  else state.latest = { entry, article, label: doing === "undo" ? null : label, correctable: doing !== "undo" };
  by("back").hidden = false;
  closePanels(article);
  state.current = null;
  if (state.held !== null) {
    state.upcoming.unshift(state.held);
    state.held = null;
  }
  state.correcting = false;
  if (state.upcoming.length > 0 && !strict) show(state.upcoming.shift());
  else {
    by("stage").replaceChildren();
    if (strict) state.outbox.flush();
    showIdle("The next query is on its way.");
  }
  const seconds = (waits / 1000).toLocaleString("en");
  announce(
    corrects ? `${description}. Sent as a correction.` : `${description}. Sending in ${seconds} s; ${keyOf("back")} takes it back at no cost.`,
  );
  fetchNext();
}

function taken(entry, report) {
  if (report.conflict) announce(`${entry.description}: kept. It contradicts the earlier evidence, and replaces it.`);
  else if (report.wants_more) announce(`${entry.description}: kept. Others are asked about it too.`);
  else if (state.latest !== null && state.latest.entry.id === entry.id) announce(`${entry.description}: kept.`);
  if (state.latest !== null && state.latest.entry.id === entry.id && state.latest.undoable) {
    state.latest = null;
    by("back").hidden = true;
  }
  if (state.current === null) fetchNext();
  else refreshUnseen();
}

export function back() {
  if (state.latest === null || state.correcting) return announce("There is no earlier answer in this session.");
  const { entry, article } = state.latest;
  const note = article.querySelector(".earlier");
  if (state.outbox.takeBack(entry.id)) {
    if (state.current !== null) state.upcoming.unshift(state.current);
    state.latest = null;
    by("back").hidden = true;
    show(article);
    return announce(`Taken back, and never sent: ${entry.description}.`);
  }
  if (!state.latest.correctable) return announce("That cannot be taken back any more.");
  if (state.current !== null) state.held = state.current;
  show(article);
  state.correcting = true;
  note.textContent = `You said: ${entry.description}. Give another answer, or ${keyOf("refuse")} to take it back; Escape leaves it as it is.`;
  note.hidden = false;
  announce(note.textContent);
}

export function leaveCorrection() {
  state.current.querySelector(".earlier").hidden = true;
  state.current = null;
  state.correcting = false;
  const next = state.held ?? state.upcoming.shift() ?? null;
  state.held = null;
  if (next !== null) show(next);
  else showIdle("The next query is on its way.");
  fetchNext();
}
