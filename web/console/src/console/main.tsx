import { render } from "preact";
import "../styles/tokens.css";
import "../styles/page.css";
import "../styles/findings.css";
import "../styles/table.css";
import "../styles/console.css";
import "../styles/experiment-form.css";
import "../styles/live.css";
import "../styles/demos.css";
import "../styles/ticker.css";
import "../styles/chat.css";
import "../styles/auction.css";
import "../styles/measure.css";
import { beginPass } from "../live/pass";
import { Shell } from "./shell";

beginPass();

const root = document.getElementById("page");
if (root !== null) render(<Shell />, root);
