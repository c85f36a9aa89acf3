// The page of a new model: what the choices mean is said anew when one changes.

const form = document.getElementById("create");
let asked = 0;
let timer = 0;

async function show() {
  const mine = ++asked;
  const fields = new FormData(form);
  fields.set("act", "plan");
  const response = await fetch(form.action, { method: "POST", body: fields }).catch(() => null);
  if (mine !== asked || !response?.ok || response.redirected) return; // the buttons say what is wrong
  document.getElementById("plan").innerHTML = await response.text(); // of our own templates
}

form.addEventListener("input", (event) => {
  if (event.target.name === "attribute") return; // it changes no sentence, and keeps the focus
  if (event.target.closest("#learner")) return; // no sentence is about the learner
  clearTimeout(timer);
  timer = setTimeout(show, 200);
});

// What was typed or chosen before this script came, or put back by a reload, counts too.
const isChanged = (field) =>
  field.options
    ? [...field.options].some((option) => option.selected !== option.defaultSelected)
    : "defaultValue" in field && field.value !== field.defaultValue;
if ([...form.elements].some(isChanged)) show();
