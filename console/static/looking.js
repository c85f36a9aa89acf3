// Pages that show rows: small pictures have squares for pixels.

import { sharpenIn } from "./pictures.js";

sharpenIn(document.getElementById("main"));
