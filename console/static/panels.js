// The panels of a query: a set, plausibilities, a comment, similar rows.

import { announce } from "./stage.js";
import { state } from "./state.js";

export function panel(name) {
  return state.current.querySelector(`details[data-panel="${name}"]`);
}

export function closePanels(article) {
  for (const each of article.querySelectorAll("details.panel")) each.open = false;
  closeSheets();
}

export function closeSheets() {
  for (const each of document.querySelectorAll(":popover-open")) each.hidePopover();
}

/** Set the meaning of an empty field: 1 if classes are possible unless ruled out, otherwise 0. */
export function setOthers(choice) {
  for (const each of choice.form.querySelectorAll("input[data-class]")) each.placeholder = choice.value;
}

export function openPanel(name) {
  const opened = panel(name);
  const others = state.current.querySelectorAll("details.panel");
  for (const each of others) each.open = each === opened && !each.open;
  if (!opened.open) return;
  bringUp(opened);
  focusPanel(opened);
}

/** Scroll an element into view on a small screen, with its part of the page. */
export function bringUp(element) {
  const sheet = element.closest("[popover]");
  if (sheet !== null && getComputedStyle(sheet).display === "none") sheet.showPopover();
}

function focusPanel(opened) {
  opened.querySelector("input:not([type=hidden])").focus();
}

/** Make a panel opened by a click ready for typing, like one opened by its key. */
export function opensPanel(event) {
  if (event.target.matches(".panel") && event.target.open && !event.target.contains(document.activeElement?.closest("input"))) focusPanel(event.target);
}

/** The answer in a form: an act, with a label if the act is an answer; null if the form is incomplete. */
export function answerOf(form) {
  const act = form.dataset.act ?? "answer";
  if (act !== "answer") return { act, label: null };
  if (form.classList.contains("set")) {
    const several = new FormData(form).getAll("several");
    if (several.length > 0) return { act, label: several };
    announce("Choose at least one class.");
    return null;
  }
  const grades = {};
  for (const input of form.querySelectorAll("input[data-class]")) {
    const text = input.value.trim() || input.placeholder;
    grades[input.dataset.class] = Number(text.replace(",", "."));
  }
  if (Object.values(grades).some((value) => value !== 0)) return { act, label: grades };
  announce("All are 0, but at least one class must be possible. If nobody can tell, say so.");
  return null;
}

/** Announce which number in a form is invalid, in addition to the browser's message at its field. */
export function sayInvalid(event) {
  if (!event.target.matches("input[data-class]")) return;
  const { value, dataset } = event.target;
  announce(`The plausibility of ${dataset.class} is ${JSON.stringify(value)}, must be a number from 0 to 1, as .2`);
}

let touched = null; // the field that had the focus when the pointer came down

/** Select a number when its field gets the focus in any way, so that typing replaces it. */
export function selectNumber(event) {
  if (event.type === "pointerdown") touched = document.activeElement;
  else if (event.target.matches("input[data-class]") && (event.type === "focusin" || touched !== event.target)) event.target.select();
}

export async function showNear(event) {
  const near = event.target;
  if (!near.open || !near.matches(".near") || near.dataset.asked) return;
  near.dataset.asked = "yes";
  const rows = near.querySelector(".near-rows");
  const response = await fetch(near.dataset.url).catch(() => null);
  if (response?.ok) rows.innerHTML = await response.text(); // of our own templates
  else rows.textContent = "They cannot be shown now.";
}
