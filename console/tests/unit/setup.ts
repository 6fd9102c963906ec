// Node has no Temporal yet.
import "temporal-polyfill/global";
