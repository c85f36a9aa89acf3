// Pages that show rows: enlarge small pictures with sharp pixels.

import { sharpenIn } from "./pictures.js";

sharpenIn(document.getElementById("main"));
