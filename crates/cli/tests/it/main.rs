//! The program from the outside: experiments run, fail, are interrupted and resumed.

mod campaign;
mod errors;
mod failures;
