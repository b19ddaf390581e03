//! A microphone node on ST's NUCLEO-H743ZI2: an I2S microphone (left channel) at PA5
//! (clock), PA4 (word select) and PA6 (data), and the link to the hub on the
//! debugger's serial port (921,600 baud). Logs go to the debug probe (defmt over RTT).
#![no_std]
#![no_main]

use defmt_rtt as _;
use earwitness_api::node::{BLOCK_SAMPLES, NODE_RATE_HZ};
use embassy_executor::Spawner;
use embassy_stm32::i2s::{self, I2S};
use embassy_stm32::peripherals::{DMA1_CH0, USART3};
use embassy_stm32::time::Hertz;
use embassy_stm32::usart::{self, BufferedUart};
use embassy_stm32::{bind_interrupts, dma, uid};
use live::Recorder;
use panic_probe as _;
use static_cell::ConstStaticCell;

bind_interrupts!(struct Interrupts {
    DMA1_STREAM0 => dma::InterruptHandler<DMA1_CH0>;
    USART3 => usart::BufferedInterruptHandler<USART3>;
});

/// Left and right, for as long as a block takes.
const BLOCK_WORDS: usize = 2 * BLOCK_SAMPLES;

static RECORDING: ConstStaticCell<[u16; 4 * BLOCK_WORDS]> =
    ConstStaticCell::new([0; 4 * BLOCK_WORDS]);
static RECEIVED: ConstStaticCell<[u8; 64]> = ConstStaticCell::new([0; 64]);
static SENDING: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let chip = embassy_stm32::init(Default::default());

    let mut config = i2s::Config::default();
    config.frequency = Hertz(NODE_RATE_HZ);
    config.format = i2s::Format::Data16Channel32;
    config.master_clock = false;
    let microphone = I2S::new_rxonly_nomck(
        chip.SPI1,
        chip.PA6,
        chip.PA4,
        chip.PA5,
        chip.DMA1_CH0,
        RECORDING.take(),
        Interrupts,
        config,
    );
    spawner.spawn(record(microphone).expect("it is spawned once"));

    let mut config = usart::Config::default();
    config.baudrate = 921_600;
    let link = BufferedUart::new(
        chip.USART3,
        chip.PD9,
        chip.PD8,
        SENDING.take(),
        RECEIVED.take(),
        Interrupts,
        config,
    );
    let (sender, receiver) = link.expect("the rate can be had").split();
    let [a, b, c, d, ..] = uid::uid();
    live::run(u32::from_le_bytes([a, b, c, d]), receiver, sender).await
}

#[embassy_executor::task]
async fn record(mut microphone: I2S<'static, u16>) {
    let mut words = [0; BLOCK_WORDS];
    let mut recorder = Recorder::default();
    microphone.start();
    loop {
        if microphone.read(&mut words).await.is_err() {
            // The buffer ran over and begins anew: that much is lost.
            defmt::warn!("the microphone was not read in time");
            recorder.skip(4);
            continue;
        }
        let (frames, _) = words.as_chunks::<2>();
        recorder.push(core::array::from_fn(|i| frames[i][0].cast_signed()));
    }
}
