// The page of a new model: the settings of a learner are drawn as soon as it is chosen.

const form = document.getElementById("create");
const settings = document.getElementById("settings");
const hint = document.getElementById("settings-hint"); // how it is done without this script
const isChoice = (field) => ["algorithm.name", "algorithm.base.name", "strategy.name"].includes(field.name);
let asked = 0;

async function draw() {
  const mine = ++asked;
  const fields = new FormData(form);
  fields.set("act", "settings");
  const response = await fetch(form.action, { method: "POST", body: fields }).catch(() => null);
  const drawn = response?.ok && !response.redirected ? await response.text() : null;
  if (mine !== asked) return;
  hint.hidden = drawn !== null;
  if (drawn === null) return;
  const focused = document.activeElement?.id;
  settings.innerHTML = drawn; // of our own templates
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

hint.hidden = true;
form.addEventListener("change", (event) => {
  if (isChoice(event.target)) draw();
});

// What was chosen before this script came, or put back by a reload, counts too.
const isChanged = (field) =>
  field.options
    ? [...field.options].some((option) => option.selected !== option.defaultSelected)
    : field.checked !== field.defaultChecked;
if ([...form.elements].some((field) => isChoice(field) && isChanged(field))) draw();
