// The certainty of the next answer: sure, unless another grade is chosen.

import { state } from "./state.js";

function grades(article) {
  return [...article.querySelectorAll("input[name=grade]")];
}

/** Choose the next grade, cyclically. */
export function nextGrade() {
  const all = grades(state.current);
  const chosen = all.findIndex((each) => each.checked);
  all[(chosen + 1) % all.length].checked = true;
  showGrade(state.current);
  return all[(chosen + 1) % all.length].value;
}

/** Show the grade where the choice is out of sight, and beside the classes. */
export function showGrade(article) {
  const all = grades(article);
  const chosen = all.findIndex((each) => each.checked);
  article.querySelector(".unsure-word").textContent = chosen > 0 ? all[chosen].value : "Not sure …";
  article.querySelector("form.classes").classList.toggle("graded", chosen > 0);
}

/** The label that names a class with the chosen certainty, and its description. */
export function gradedLabel(article, name) {
  const chosen = grades(article).find((each) => each.checked);
  const others = Number(chosen.dataset.others);
  if (others === 0) return { label: name, words: null };
  const classes = [...article.querySelectorAll("button.class")].map((each) => each.value);
  return { label: Object.fromEntries(classes.map((each) => [each, each === name ? 1 : others])), words: `${name}, ${chosen.value}` };
}
