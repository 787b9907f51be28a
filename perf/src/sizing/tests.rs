//! The walkthrough's numbers and the rules of sizing.
