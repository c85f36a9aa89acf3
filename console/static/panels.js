// The forms of one query that open: a set, plausibilities, a comment, rows like it.

import { announce } from "./stage.js";
import { state } from "./state.js";

export function panel(name) {
  return state.current.querySelector(`details[data-panel="${name}"]`);
}

export function closePanels(article) {
  for (const each of article.querySelectorAll("details.panel")) each.open = false;
}

export function openPanel(name) {
  const opened = panel(name);
  const others = state.current.querySelectorAll("details.panel");
  for (const each of others) each.open = each === opened && !each.open;
  if (opened.open) opened.querySelector("input:not([type=hidden])").focus();
}

/** The answer in a form: an act, and a label where the act is an answer; null: the form is not filled in yet. */
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
  for (const input of form.querySelectorAll("input[data-class]")) grades[input.dataset.class] = Number(input.value);
  if (Object.values(grades).some((value) => value !== 0)) return { act, label: grades };
  announce("All are 0, but some class must be possible. If nobody can tell, refuse.");
  return null;
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
