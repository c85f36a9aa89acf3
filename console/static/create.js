// The page of a new model: a file is uploaded as soon as it is chosen, the plan is updated when a choice changes, and
// progress is shown during reading and creation. Listeners are on the document, since the form is replaced.

import { drawSettings, isChanged } from "./learner.js";

const POLL_MS = 400;
let asked = 0;
let timer = 0;

const form = () => document.getElementById("create");

async function show() {
  const mine = ++asked;
  const fields = new FormData(form());
  fields.set("act", "plan");
  const response = await fetch(form().action, { method: "POST", body: fields }).catch(() => null);
  if (mine !== asked || !response?.ok || response.redirected) return; // the buttons report the error
  const plan = document.getElementById("plan");
  if (plan !== null) plan.innerHTML = await response.text(); // of our own templates
}

// Show progress: the bytes sent, then the console's reports.
function sayProgress(line, said, share = null) {
  const bar = line.querySelector("progress");
  if (share === null) bar.removeAttribute("value");
  else bar.value = share;
  const text = line.querySelector("span");
  if (text.textContent !== said) text.textContent = said;
  line.hidden = false;
}

function send(fields) {
  const line = document.getElementById("progress");
  const buttons = [...form().querySelectorAll("button")];
  buttons.forEach((each) => (each.disabled = true));
  const request = new XMLHttpRequest(); // fetch does not report upload progress
  let polling = 0;
  const poll = async () => {
    const response = await fetch("/create/progress").catch(() => null);
    const said = response?.ok && !response.redirected ? (await response.json()).said : "";
    if (polling !== 0 && said) sayProgress(line, said);
  };
  request.upload.onprogress = (event) => {
    if (event.lengthComputable && event.total > 100_000 && event.loaded < event.total)
      sayProgress(line, `${Math.floor((100 * event.loaded) / event.total)} % of the file is sent`, event.loaded / event.total);
  };
  request.upload.onload = () => {
    polling = setInterval(poll, POLL_MS);
  };
  request.onloadend = () => {
    clearInterval(polling);
    polling = 0;
    if (request.status === 0) {
      buttons.forEach((each) => (each.disabled = false));
      sayProgress(line, "The console did not answer. Try again.", 0);
      return;
    }
    const path = new URL(request.responseURL).pathname;
    if (path !== "/create") return void location.assign(request.responseURL);
    const page = new DOMParser().parseFromString(request.responseText, "text/html"); // of our own templates
    document.getElementById("main").replaceWith(document.adoptNode(page.getElementById("main")));
    document.title = page.title;
    scrollTo(0, 0);
    (document.querySelector("#main [role=alert]") ?? document.querySelector("#main [autofocus], #main h1"))?.focus();
  };
  request.open("POST", form().action);
  request.send(fields);
}

// Show the other roles of a column beside its kind.
function markColumns() {
  const [ids, labels] = ["id", "class"].map((name) => document.getElementById(name).value);
  for (const each of document.querySelectorAll("#create [data-column]")) {
    const column = each.dataset.column;
    each.textContent = column === labels ? "holds the class" : column === ids ? "holds the ids" : "";
  }
}

// Offer of the choices about labels those that there are: without a column of the class there are no labels to keep.
function offerLabels() {
  const kind = document.getElementById("class").value ? "labelled" : "unlabelled";
  const select = document.getElementById("labels");
  for (const each of [select.labels[0], ...select.options]) {
    each.textContent = each.dataset[kind] || each.dataset.labelled;
    each.hidden = each.disabled = each.dataset[kind] === "";
  }
  if (select.selectedOptions[0]?.hidden) select.value = [...select.options].find((each) => !each.hidden).value;
}

document.addEventListener("input", (event) => {
  if (!event.target.closest?.("#create") || event.target.type === "file") return;
  if (event.target.name === "attribute") return; // it does not affect the plan, and keeps the focus
  if (event.target.closest("#learner")) return; // the learner does not affect the plan
  if (event.target.id === "id" || event.target.id === "class") markColumns();
  if (event.target.id === "class") offerLabels();
  clearTimeout(timer);
  timer = setTimeout(show, 200);
});
document.addEventListener("change", (event) => {
  if (event.target.id === "file" && event.target.files.length > 0) form().requestSubmit();
  else if (event.target.closest?.("#create")) drawSettings(event.target);
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "create") return;
  event.preventDefault();
  clearTimeout(timer);
  asked += 1;
  send(new FormData(form(), event.submitter));
});

// Apply what was typed or chosen before this script loaded, or restored by a reload.
const chosen = document.getElementById("file");
if (chosen !== null && chosen.files.length > 0) form().requestSubmit();
else if (chosen === null && [...form().elements].some(isChanged)) show();
