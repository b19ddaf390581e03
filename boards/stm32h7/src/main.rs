//! A microphone node on ST's NUCLEO-H743ZI2: a 24-bit I2S microphone for the left
//! channel at PE5 (clock), PE4 (word select) and PE6 (data), and the link to the hub on
//! the debugger's serial port (1 Mbaud). Logs go to the debug probe (defmt over RTT).
//!
//! The processor runs at 64 MHz, several times what a node needs. The microphone's clock
//! comes from the debugger's crystal, since the chip's own oscillator drifts by percents.
#![no_std]
#![no_main]

use defmt_rtt as _;
use earwitness_api::node::BLOCK_SAMPLES;
use embassy_executor::Spawner;
use embassy_stm32::peripherals::{DMA1_CH0, SAI1, USART3};
use embassy_stm32::rcc::{
    Hse, HseMode, Pll, PllDiv, PllMul, PllPreDiv, PllSource, VoltageScale, mux::Saisel,
};
use embassy_stm32::sai::{
    self, BitOrder, DataSize, MasterClockDivider, Sai, TxRx, split_subblocks, word::U7,
};
use embassy_stm32::usart::{self, BufferedUart};
use embassy_stm32::{Config, bind_interrupts, dma, time::Hertz, uid};
use live::Recorder;
use panic_probe as _;
use static_cell::ConstStaticCell;

bind_interrupts!(struct Interrupts {
    DMA1_STREAM0 => dma::InterruptHandler<DMA1_CH0>;
    USART3 => usart::BufferedInterruptHandler<USART3>;
});

/// What the microphone's DMA writes round and round: 40 ms.
static HEARD: ConstStaticCell<[u32; 4 * BLOCK_SAMPLES]> =
    ConstStaticCell::new([0; 4 * BLOCK_SAMPLES]);
static RECEIVED: ConstStaticCell<[u8; 64]> = ConstStaticCell::new([0; 64]);
static SENDING: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);

/// Bits below the 16 that are kept of a 32-bit slot: 24 dB louder than its upper half,
/// for such microphones give speech at arm's length 60 dB below full scale.
const GAIN_SHIFT: u32 = 12;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let chip = embassy_stm32::init(clocks());

    let (microphone, _) = split_subblocks(chip.SAI1);
    let microphone = Sai::new_asynchronous(
        microphone,
        chip.PE5,
        chip.PE6,
        chip.PE4,
        chip.DMA1_CH0,
        HEARD.take(),
        Interrupts,
        i2s(),
    );
    spawner.spawn(record(microphone).expect("it is spawned once"));

    let mut config = usart::Config::default();
    config.baudrate = 1_000_000;
    let link = BufferedUart::new(
        chip.USART3,
        chip.PD9,
        chip.PD8,
        SENDING.take(),
        RECEIVED.take(),
        Interrupts,
        config,
    );
    let (sender, receiver) = link.expect("the rate is one the port has").split();
    live::run(id(), receiver, sender).await
}

/// 64 MHz for the processor, 8.192 MHz (512 x 16 kHz) for the microphone.
fn clocks() -> Config {
    let mut config = Config::default();
    config.rcc.voltage_scale = VoltageScale::Scale3;
    config.rcc.hse = Some(Hse {
        freq: Hertz::mhz(8),
        mode: HseMode::Bypass,
    });
    config.rcc.pll3 = Some(Pll {
        source: PllSource::HSE,
        prediv: PllPreDiv::DIV5,
        mul: PllMul::MUL128,
        fracn: None,
        divp: Some(PllDiv::DIV25),
        divq: None,
        divr: None,
    });
    config.rcc.mux.sai1sel = Saisel::PLL3_P;
    config
}

/// Two slots of 32 bits at 16 kHz, of which the left one is kept.
fn i2s() -> sai::Config {
    let mut config = sai::Config::default();
    config.tx_rx = TxRx::Receiver;
    config.data_size = DataSize::Data32;
    config.bit_order = BitOrder::MsbFirst;
    config.slot_enable = 0b01;
    config.frame_length = 64;
    config.frame_sync_active_level_length = U7(32);
    // The bit clock: 8.192 MHz / 8 = 64 x 16 kHz.
    config.master_clock_divider = MasterClockDivider::DIV8;
    config.nodiv = true;
    config
}

/// A number of the chip's own: its 96 bits folded into 32.
fn id() -> u32 {
    let bytes = uid::uid();
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .fold(0, |id, word| id ^ u32::from_le_bytes(*word))
}

#[embassy_executor::task]
async fn record(mut microphone: Sai<'static, SAI1, u32>) {
    let mut slots = [0; BLOCK_SAMPLES];
    let mut recorder = Recorder::default();
    if let Err(error) = microphone.start() {
        defmt::panic!("the microphone did not start: {}", error);
    }
    loop {
        if let Err(error) = microphone.read(&mut slots).await {
            defmt::panic!("the microphone stopped: {}", error);
        }
        recorder.push(slots.map(sample));
    }
}

/// The sample in a slot, whose bits are a signed number; full scale where it is louder.
fn sample(slot: u32) -> i16 {
    let value = slot.cast_signed() >> GAIN_SHIFT;
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
